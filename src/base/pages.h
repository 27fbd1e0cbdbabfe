// Anonymous memory in huge pages where the system gives them: large working sets that are walked
// all over would otherwise spend their time on address translation.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace deepinfer {

// Zeroed memory, 64-byte aligned or better, returned to the system with the object.  Move-only.
// From 256 KiB on it is asked for as whole huge pages.
class PageBuffer {
 public:
  PageBuffer() = default;
  // Ends the program when the system has no memory left, as operator new would.
  explicit PageBuffer(size_t bytes);
  PageBuffer(PageBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        mapped_(std::exchange(other.mapped_, {})) {}
  PageBuffer& operator=(PageBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~PageBuffer();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::span<std::byte> mapped_;  // what the system gave, before alignment
};

}  // namespace deepinfer
