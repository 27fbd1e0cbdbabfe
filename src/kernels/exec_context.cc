#include "kernels/exec_context.h"

#include <algorithm>
#include <cstdlib>

#include "base/check.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace deepinfer {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMinChunkBytes = size_t{2} << 20;

#if defined(__x86_64__)
constexpr uint64_t kFlushBits = 0x8040;  // MXCSR: flush-to-zero and denormals-are-zero
uint64_t ReadMode() { return _mm_getcsr(); }
void WriteMode(uint64_t mode) { _mm_setcsr(static_cast<unsigned int>(mode)); }
#elif defined(__aarch64__)
constexpr uint64_t kFlushBits = uint64_t{1} << 24;  // FPCR.FZ
uint64_t ReadMode() {
  uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void WriteMode(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
#error "deepinfer needs a processor whose denormal mode it knows: x86-64 or aarch64"
#endif

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

FlushDenormals::FlushDenormals() : saved_(ReadMode()) { WriteMode(saved_ | kFlushBits); }

FlushDenormals::~FlushDenormals() { WriteMode(saved_); }

void* ScratchArena::AllocBytes(size_t bytes) {
  bytes = RoundUp(std::max<size_t>(bytes, 1));
  while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].size()) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    // Doubling keeps the number of chunks, and so the search above, small.
    const size_t size = std::max({bytes, kMinChunkBytes, RoundUp(capacity())});
    chunks_.emplace_back(size);
    used_ = 0;
  }
  void* result = chunks_[chunk_].data() + used_;
  used_ += bytes;
  size_t in_use = used_;
  for (size_t i = 0; i < chunk_; ++i) in_use += chunks_[i].size();
  peak_ = std::max(peak_, in_use);
  return result;
}

void ScratchArena::Reserve(size_t bytes) {
  CHECK(chunks_.empty());
  if (bytes > 0) chunks_.emplace_back(RoundUp(bytes));
}

size_t ScratchArena::capacity() const {
  size_t total = 0;
  for (const PageBuffer& chunk : chunks_) total += chunk.size();
  return total;
}

void ExecContext::ParallelFor(int64_t count, int64_t grain,
                              FunctionRef<void(int64_t begin, int64_t end)> body) {
  ParallelForSlots(count, grain,
                   [&](int64_t begin, int64_t end, int /*slot*/) { body(begin, end); });
}

void ExecContext::ParallelForSlots(int64_t count, int64_t grain, ThreadPool::Body body) {
  if (StopRequested()) return;
  pool_.Run(count, grain, [&](int64_t begin, int64_t end, int slot) {
    if (StopRequested()) return;
    const FlushDenormals flush;
    body(begin, end, slot);
  });
}

void ExecContext::ParallelForAll(int64_t count, int64_t grain, ThreadPool::Body body) {
  pool_.Run(count, grain, [&](int64_t begin, int64_t end, int slot) {
    const FlushDenormals flush;
    body(begin, end, slot);
  });
}

}  // namespace deepinfer
