// A checkpoint directory: one model.safetensors, or shards named by model.safetensors.index.json.
// Files are mapped and used in place; names lose a leading "model.".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

using OnFileOpened = std::function<void(int64_t open, int64_t total)>;

// Move-only, immutable, thread-safe.  Tensor bytes live as long as the object.
class Checkpoint {
 public:
  // on_file hears how many of its files are open.
  static Result<Checkpoint> Open(const Path& dir, const OnFileOpened& on_file = {});
  // Whether a directory has files that Open would look at.
  static bool HasWeights(const Path& dir);

  const Path& dir() const { return dir_; }
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  // Null when there is no such tensor.
  const StoredTensor* Find(std::string_view name) const;
  std::span<const SafetensorsFile> files() const { return files_; }

  // Whether there is any tensor of the draft head.  A checkpoint may come without all of them.
  bool HasDraftHead() const;

  // Every expected tensor is there with its type and shape, and nothing else is; reads no data.
  // The first difference is the error.
  Status ValidateLayout(std::span<const TensorSpec> expected) const;
  // ValidateLayout, then the scale bytes, which must lie in 41..200.  No unchecked scale is ever
  // used, but not all are read here: rows of the n-gram tables are checked when they are fetched,
  // and routed experts, where their scales exceed kMaxEagerScaleBytes, when they are first
  // acquired (the released model has 17 GB of them, minutes on a slow disk).
  Status Validate(std::span<const TensorSpec> expected) const;

 private:
  explicit Checkpoint(Path dir) : dir_(std::move(dir)) {}
  Status AddFile(const Path& path);
  Status OpenShards(const Path& index_path, const OnFileOpened& on_file);

  Path dir_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

inline constexpr uint64_t kMaxEagerScaleBytes = uint64_t{1} << 30;

// The planes that Validate may leave to the sources, by name.
bool IsNgramTable(std::string_view name);
bool IsRoutedExpert(std::string_view name);

// Index of the first scale byte outside 41..200; none when all are inside.
std::optional<int64_t> FirstBadScale(std::span<const std::byte> scales);

// CorruptData for such a byte: names the file, the tensor, what was found and what was expected.
Status BadScaleError(const StoredTensor& tensor, std::string_view name, int64_t at);

}  // namespace deepinfer
