#include "weights/checkpoint.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <set>

#include "tensor/fp8.h"

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kPrefix = "model.";
constexpr std::string_view kDraftPrefix = "mtp.";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kSingleFile = "model.safetensors";
constexpr uint64_t kMaxIndexBytes = uint64_t{256} << 20;

std::string_view WithoutPrefix(std::string_view name) {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

// mtp.K.embed.weight and mtp.K.head.weight: draft blocks share both with the backbone, and copies
// are left aside.
bool IsUnusedCopy(std::string_view name) {
  if (!name.starts_with(kDraftPrefix)) return false;
  name.remove_prefix(kDraftPrefix.size());
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return false;
  name.remove_prefix(dot + 1);
  return name == "embed.weight" || name == "head.weight";
}

// tensor name -> shard file name
Result<std::map<std::string, std::string>> ReadIndex(const Path& path) {
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxIndexBytes));
  dom::parser parser;
  dom::object root;
  dom::object map;
  if (parser.parse(simdjson::padded_string(json)).get(root) != simdjson::SUCCESS ||
      root.at_key("weight_map").get(map) != simdjson::SUCCESS) {
    return CorruptData(
        fmt::format("{}: found no JSON object with 'weight_map', expected one", path.string()));
  }
  std::map<std::string, std::string> result;
  for (const auto& [name, value] : map) {
    std::string_view shard;
    if (value.get(shard) != simdjson::SUCCESS || shard.empty() ||
        shard.find('/') != std::string_view::npos) {
      return CorruptData(fmt::format("{}: weight_map: tensor '{}': expected a file name beside it",
                                     path.string(), name));
    }
    if (!result.emplace(name, shard).second) {
      return CorruptData(fmt::format("{}: weight_map: found tensor '{}' twice, expected it once",
                                     path.string(), name));
    }
  }
  return result;
}

}  // namespace

Result<Checkpoint> Checkpoint::Open(const Path& dir, const OnFileOpened& on_file) {
  std::error_code error;
  if (!std::filesystem::is_directory(dir, error)) {
    return NotFound(
        fmt::format("{}: found no such directory, expected a checkpoint directory", dir.string()));
  }
  Checkpoint checkpoint(dir);
  if (FileExists(dir / kIndexFile)) {
    RETURN_IF_ERROR(checkpoint.OpenShards(dir / kIndexFile, on_file));
  } else if (FileExists(dir / kSingleFile)) {
    RETURN_IF_ERROR(checkpoint.AddFile(dir / kSingleFile));
  } else {
    return NotFound(fmt::format("{}: found neither {} nor {}, expected one of them", dir.string(),
                                kIndexFile, kSingleFile));
  }
  // Views point into the mappings, which do not move with the objects that own them; the file
  // pointers do, so they are set last.
  for (const SafetensorsFile& file : checkpoint.files_) {
    for (const auto& [name, view] : file.tensors()) {
      const std::string_view plain = WithoutPrefix(name);
      if (IsUnusedCopy(plain)) continue;
      const auto [at, added] =
          checkpoint.tensors_.emplace(plain, StoredTensor{.view = view, .file = &file});
      if (added) continue;
      return CorruptData(fmt::format("{}: tensor '{}': found it in {} too, expected it once",
                                     file.path().string(), plain,
                                     at->second.file->path().string()));
    }
  }
  return checkpoint;
}

bool Checkpoint::HasWeights(const Path& dir) {
  return FileExists(dir / kIndexFile) || FileExists(dir / kSingleFile);
}

Status Checkpoint::AddFile(const Path& path) {
  ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  files_.push_back(std::move(file));
  return Status::Ok();
}

Status Checkpoint::OpenShards(const Path& index_path, const OnFileOpened& on_file) {
  ASSIGN_OR_RETURN(const auto weight_map, ReadIndex(index_path));
  std::set<std::string> shards;
  for (const auto& [name, shard] : weight_map) shards.insert(shard);
  files_.reserve(shards.size());
  for (const std::string& shard : shards) {
    RETURN_IF_ERROR(AddFile(dir_ / shard));
    if (on_file) on_file(std::ssize(files_), std::ssize(shards));
    for (const auto& [name, view] : files_.back().tensors()) {
      const auto listed = weight_map.find(name);
      if (listed != weight_map.end() && listed->second == shard) continue;
      return CorruptData(fmt::format(
          "{}: tensor '{}': found it in {}, expected {} as the index says", index_path.string(),
          name, shard, listed == weight_map.end() ? "nowhere" : listed->second));
    }
  }
  for (const auto& [name, shard] : weight_map) {
    const auto is_shard = [&file_name = shard](const SafetensorsFile& f) {
      return f.path().filename() == file_name;
    };
    const auto file = std::find_if(files_.begin(), files_.end(), is_shard);
    if (file->Find(name) != nullptr) continue;
    return CorruptData(fmt::format("{}: tensor '{}': found nothing, expected it as the index says",
                                   file->path().string(), name));
  }
  return Status::Ok();
}

const StoredTensor* Checkpoint::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

bool Checkpoint::HasDraftHead() const {
  const auto first = tensors_.lower_bound(kDraftPrefix);
  return first != tensors_.end() && first->first.starts_with(kDraftPrefix);
}

Status Checkpoint::ValidateLayout(std::span<const TensorSpec> expected) const {
  std::set<std::string_view> names;
  for (const TensorSpec& spec : expected) {
    names.insert(spec.name);
    const StoredTensor* stored = Find(spec.name);
    if (stored == nullptr) {
      return CorruptData(fmt::format("{}: tensor '{}': found nothing, expected {}", dir_.string(),
                                     spec.name, DescribeTensor(spec.dtype, spec.shape)));
    }
    if (stored->view.dtype != spec.dtype || stored->view.shape != spec.shape) {
      return CorruptData(fmt::format("{}: tensor '{}': found {}, expected {}",
                                     stored->file->path().string(), spec.name,
                                     DescribeTensor(stored->view.dtype, stored->view.shape),
                                     DescribeTensor(spec.dtype, spec.shape)));
    }
  }
  for (const auto& [name, stored] : tensors_) {
    if (names.contains(name)) continue;
    return CorruptData(fmt::format("{}: tensor '{}': found {}, expected no such tensor",
                                   stored.file->path().string(), name,
                                   DescribeTensor(stored.view.dtype, stored.view.shape)));
  }
  return Status::Ok();
}

Status Checkpoint::Validate(std::span<const TensorSpec> expected) const {
  RETURN_IF_ERROR(ValidateLayout(expected));
  uint64_t expert_scale_bytes = 0;
  for (const auto& [name, stored] : tensors_) {
    const bool counts = stored.view.dtype == DType::kF8E8M0 && IsRoutedExpert(name);
    if (counts) expert_scale_bytes += stored.view.bytes.size();
  }
  const bool skip_experts = expert_scale_bytes > kMaxEagerScaleBytes;
  for (const auto& [name, stored] : tensors_) {
    if (stored.view.dtype != DType::kF8E8M0 || IsNgramTable(name)) continue;
    if (skip_experts && IsRoutedExpert(name)) continue;
    if (const auto bad = FirstBadScale(stored.view.bytes)) return BadScaleError(stored, name, *bad);
  }
  return Status::Ok();
}

bool IsNgramTable(std::string_view name) {
  return name.find(".engram.embed.") != std::string_view::npos;
}

bool IsRoutedExpert(std::string_view name) {
  return name.find(".ffn.experts.") != std::string_view::npos;
}

std::optional<int64_t> FirstBadScale(std::span<const std::byte> scales) {
  // In pieces without an early exit, which the compiler turns into vector code: 20 times faster.
  constexpr size_t kPiece = 4096;
  const auto is_bad = [](std::byte b) {
    // One comparison: bytes below the range wrap around to large ones.
    constexpr uint8_t kWidth = kMaxScaleByte - kMinScaleByte;
    return static_cast<uint8_t>(static_cast<uint8_t>(b) - kMinScaleByte) > kWidth;
  };
  for (size_t begin = 0; begin < scales.size(); begin += kPiece) {
    const auto piece = scales.subspan(begin, std::min(kPiece, scales.size() - begin));
    uint8_t any = 0;
    for (const std::byte b : piece) any |= static_cast<uint8_t>(is_bad(b));
    if (any == 0) continue;
    return std::find_if(piece.begin(), piece.end(), is_bad) - scales.begin();
  }
  return std::nullopt;
}

Status BadScaleError(const StoredTensor& tensor, std::string_view name, int64_t at) {
  return CorruptData(
      fmt::format("{}: tensor '{}': found scale byte {} at element {}, expected {} to {}",
                  tensor.file->path().string(), name,
                  static_cast<int>(tensor.view.bytes[static_cast<size_t>(at)]), at, kMinScaleByte,
                  kMaxScaleByte));
}

}  // namespace deepinfer
