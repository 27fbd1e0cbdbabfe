// A checkpoint directory: one model.safetensors, or shards named by model.safetensors.index.json.
// Files are mapped and used in place; names lose a leading "model.".
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

namespace deepinfer {

// A tensor and the file it lies in.
struct StoredTensor {
  TensorView view;
  const SafetensorsFile* file = nullptr;
};

// Move-only, immutable, thread-safe.  Tensor bytes live as long as the object.
class Checkpoint {
 public:
  static Result<Checkpoint> Open(const Path& dir);

  const Path& dir() const { return dir_; }
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  // Null when there is no such tensor.
  const StoredTensor* Find(std::string_view name) const;
  std::span<const SafetensorsFile> files() const { return files_; }

  // Every expected tensor is there with its type and shape, and nothing else is; then the scale
  // bytes of every weight but the n-gram tables (whose rows are checked when they are fetched) lie
  // in 41..200.  The first difference is the error.
  Status Validate(std::span<const TensorSpec> expected) const;

 private:
  explicit Checkpoint(Path dir) : dir_(std::move(dir)) {}
  Status AddFile(const Path& path);
  Status OpenShards(const Path& index_path);

  Path dir_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

// Index of the first scale byte outside 41..200, or -1.
int64_t FirstBadScale(std::span<const std::byte> scales);

// InvalidArgument-free error text for such a byte: "tensor 't' in f: found scale byte ...".
Status BadScaleError(const StoredTensor& tensor, std::string_view name, int64_t at);

}  // namespace deepinfer
