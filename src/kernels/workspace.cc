#include "kernels/workspace.h"

#include <new>

namespace deepinfer {
namespace {

constexpr std::align_val_t kAlignment{64};

void Release(std::byte* data) { ::operator delete(data, kAlignment); }

}  // namespace

Workspace::Workspace() = default;

Workspace::~Workspace() { Release(data_); }

void* Workspace::Get(size_t bytes) {
  if (bytes > size_) {
    Release(data_);
    data_ = nullptr;
    data_ = static_cast<std::byte*>(::operator new(bytes, kAlignment));
    size_ = bytes;
  }
  return data_;
}

}  // namespace deepinfer
