#include "base/pages.h"

#include <sys/mman.h>

#include <bit>
#include <cstdint>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

PageBuffer::PageBuffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  const size_t slack = bytes >= kHugePage ? kHugePage : 0;
  void* data =
      mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(data != MAP_FAILED);
  mapped_ = {static_cast<std::byte*>(data), bytes + slack};
  data_ = mapped_.data();
  if (slack == 0) return;
  const auto address = reinterpret_cast<uintptr_t>(data);
  data_ += (kHugePage - address % kHugePage) % kHugePage;
  madvise(data_, bytes, MADV_HUGEPAGE);  // best effort
}

PageBuffer::~PageBuffer() {
  if (!mapped_.empty()) munmap(mapped_.data(), mapped_.size());
}

}  // namespace deepinfer
