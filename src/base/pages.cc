#include "base/pages.h"

#include <sys/mman.h>

#include <bit>
#include <cstdint>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// Smaller buffers fit the first level of address translation well enough.
constexpr size_t kHugeFrom = size_t{256} << 10;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

PageBuffer::PageBuffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  // A huge page is given for whole ones only.
  const bool huge = bytes >= kHugeFrom;
  const size_t whole = huge ? RoundUp(bytes, kHugePage) : bytes;
  const size_t size = huge ? whole + kHugePage : whole;
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(data != MAP_FAILED);
  mapped_ = {static_cast<std::byte*>(data), size};
  data_ = mapped_.data();
  if (!huge) return;
  const auto address = reinterpret_cast<uintptr_t>(data);
  data_ += RoundUp(address, kHugePage) - address;
  madvise(data_, whole, MADV_HUGEPAGE);  // best effort
}

PageBuffer::~PageBuffer() {
  if (!mapped_.empty()) munmap(mapped_.data(), mapped_.size());
}

}  // namespace deepinfer
