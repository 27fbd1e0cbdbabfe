// One safetensors file: 8 bytes of header length, a JSON header, tensor data.  Mapped and used in
// place. Every claim of the header is checked before any byte of data is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "tensor/dtype.h"

namespace deepinfer {

// A stored tensor: type, shape and bytes, borrowed from a mapped file.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // slowest axis first
  std::span<const std::byte> bytes;

  int64_t num_elements() const;
};

// "F8_E4M3 [1280, 5120]"
std::string DescribeTensor(DType dtype, std::span<const int64_t> shape);

// Where a tensor lies, as the header says.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes from the start of the data section
  uint64_t end = 0;
};

// Parses and checks a header (the JSON text alone) against the size of the data section: types,
// shapes that match their byte ranges, no overlap, no gap, no duplicate, no number that is not
// exact. Entries come in the order of their data.
Result<std::vector<TensorEntry>> ParseSafetensorsHeader(std::string_view json, uint64_t data_bytes);

// Move-only, immutable, thread-safe.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> Open(const Path& path);

  const Path& path() const { return file_.path(); }
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  // Null when there is no such tensor.
  const TensorView* Find(std::string_view name) const;
  // The header's JSON text, for fingerprints.
  std::string_view header() const { return header_; }
  const MappedFile& file() const { return file_; }

 private:
  SafetensorsFile(MappedFile file, std::string_view header)
      : file_(std::move(file)), header_(header) {}

  MappedFile file_;
  std::string_view header_;
  std::map<std::string, TensorView, std::less<>> tensors_;
};

}  // namespace deepinfer
