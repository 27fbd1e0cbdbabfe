#include "kernels/workspace.h"

namespace deepinfer {

Workspace::Workspace() = default;

Workspace::~Workspace() = default;

void* Workspace::Get(size_t bytes) {
  if (bytes > memory_.size()) {
    memory_ = PageBuffer();
    memory_ = PageBuffer(bytes);
  }
  return memory_.data();
}

}  // namespace deepinfer
