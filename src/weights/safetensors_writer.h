// Writes one safetensors file: the header first, from a list of tensors, then their data in order.
// The file appears under its name only when it is complete.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "tensor/dtype.h"

namespace deepinfer {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;

  int64_t num_elements() const;
  int64_t num_bytes() const { return num_elements() * InfoOf(dtype).bytes; }
};

// Move-only, not thread-safe.
class SafetensorsWriter {
 public:
  static Result<SafetensorsWriter> Create(const Path& path, std::span<const TensorSpec> tensors,
                                          const std::map<std::string, std::string>& metadata = {});

  // The next bytes of data; tensors follow each other in the order of the specs.
  Status Write(std::span<const std::byte> bytes);
  template <typename T>
  Status Write(std::span<const T> values) {
    return Write(std::as_bytes(values));
  }
  // The next bytes are zeros, left as a hole in the file.
  Status Skip(uint64_t bytes);
  // Precondition: exactly the data of all tensors was written.
  Status Commit();

 private:
  SafetensorsWriter(FileWriter file, uint64_t total) : file_(std::move(file)), total_(total) {}

  FileWriter file_;
  uint64_t total_;  // size of the complete file
};

}  // namespace deepinfer
