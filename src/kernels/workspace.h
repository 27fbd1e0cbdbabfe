// Memory of one thread that a kernel needs beside its parameters.  Grows while warming up and is
// kept, so that steps allocate nothing.  Out of line: kernel files with their own instruction set
// must not instantiate what other files use too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/pages.h"

namespace deepinfer {

// Not thread-safe: make it thread_local.
class Workspace {
 public:
  Workspace();
  ~Workspace();

  // At least `bytes` bytes, 64-byte aligned, valid until the next call; the content is lost when it
  // grows.
  void* Get(size_t bytes);
  // The same for `count` values of T.
  template <typename T>
  [[gnu::always_inline]] T* Array(int64_t count) {
    return static_cast<T*>(Get(static_cast<size_t>(count) * sizeof(T)));
  }

 private:
  PageBuffer memory_;
};

}  // namespace deepinfer
