#include "synth/synthesize.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/manifest.h"
#include "model/ngram_layout.h"
#include "synth/presets.h"
#include "synth/tensor_values.h"
#include "synth/tokenizer_files.h"
#include "weights/checkpoint.h"
#include "weights/safetensors_writer.h"

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

// A multiple of TensorValues::kGranule; large enough that a write call costs nothing.
constexpr uint64_t kBufferBytes = uint64_t{1} << 20;
// Headers, tokenizer and what the file system needs for itself.
constexpr uint64_t kRoomBytes = uint64_t{64} << 20;

Status OsError(const Path& path, std::string_view action, const std::error_code& error) {
  return IoError(fmt::format("{}: cannot {}: {}", path.string(), action, error.message()));
}

// Remembers what was made, and removes it unless it is kept.
class Draft {
 public:
  static Result<Draft> Begin(const Path& dir) {
    std::error_code error;
    const bool existed = std::filesystem::exists(dir, error);
    if (existed && !std::filesystem::is_directory(dir, error)) {
      return InvalidArgument(
          fmt::format("{}: found a file, expected a new or empty directory", dir.string()));
    }
    if (existed && !std::filesystem::is_empty(dir, error)) {
      return InvalidArgument(fmt::format(
          "{}: found a directory with files in it, expected a new or empty one", dir.string()));
    }
    if (!existed && !std::filesystem::create_directories(dir, error) && error) {
      return OsError(dir, "create the directory", error);
    }
    return Draft(dir, !existed);
  }
  Draft(Draft&& other) noexcept
      : dir_(std::move(other.dir_)),
        made_dir_(other.made_dir_),
        armed_(std::exchange(other.armed_, false)),
        files_(std::move(other.files_)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (!armed_) return;
    std::error_code ignored;
    for (const Path& file : files_) std::filesystem::remove(file, ignored);
    if (made_dir_) std::filesystem::remove(dir_, ignored);
  }

  // The path of a file that is about to be written.
  Path Add(const std::string& name) {
    files_.push_back(dir_ / name);
    return files_.back();
  }
  void Keep() { armed_ = false; }

 private:
  Draft(Path dir, bool made_dir) : dir_(std::move(dir)), made_dir_(made_dir) {}

  Path dir_;
  bool made_dir_;
  bool armed_ = true;
  std::vector<Path> files_;
};

Status WriteText(const Path& path, std::string_view text) {
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

// Tensors in order, cut where a shard would grow beyond the limit.
std::vector<std::vector<TensorSpec>> CutIntoShards(std::vector<TensorSpec> specs, uint64_t limit) {
  std::vector<std::vector<TensorSpec>> shards;
  uint64_t bytes = 0;
  for (TensorSpec& spec : specs) {
    const auto size = static_cast<uint64_t>(spec.num_bytes());
    if (shards.empty() || (bytes > 0 && bytes + size > limit)) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += size;
    shards.back().push_back(std::move(spec));
  }
  return shards;
}

std::string IndexJson(const std::vector<std::vector<TensorSpec>>& shards,
                      const std::vector<std::string>& names, int64_t total_bytes) {
  // By hand: an ordered object of a hundred thousand keys takes minutes to build.
  std::string text =
      fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":{{)", total_bytes);
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const TensorSpec& spec : shards[i]) {
      text += fmt::format("{}\"{}\":\"{}\"", text.ends_with('{') ? "" : ",\n", spec.name, names[i]);
    }
  }
  return text + "}}\n";
}

std::string NgramJson(const ModelConfig& config, const NgramLayout& layout) {
  Json primes = Json::array();
  Json offsets = Json::array();
  Json multipliers = Json::array();
  const auto heads = static_cast<size_t>(config.ngram_num_heads);
  for (int table = 0; table < layout.num_tables(); ++table) {
    Json by_order = Json::array();
    const std::vector<int64_t>& flat = layout.primes(table);
    for (size_t begin = 0; begin < flat.size(); begin += heads) {
      by_order.push_back(
          std::vector<int64_t>(flat.begin() + static_cast<ptrdiff_t>(begin),
                               flat.begin() + static_cast<ptrdiff_t>(begin + heads)));
    }
    primes.push_back(by_order);
    offsets.push_back(layout.offsets(table));
    Json texts = Json::array();  // as texts, because they exceed 2^53
    for (const int64_t multiplier : layout.multipliers(table)) {
      texts.push_back(std::to_string(multiplier));
    }
    multipliers.push_back(texts);
  }
  const Json json = {{"num_classes", config.ngram_num_classes},
                     {"pad_id", config.ngram_pad_token},
                     {"primes", primes},
                     {"offsets", offsets},
                     {"multipliers", multipliers},
                     {"token_map", layout.token_map()}};
  return json.dump() + "\n";
}

// Every class once, then round and round over those above the control tokens.
std::vector<int32_t> TokenMap(const ModelConfig& config) {
  const int classes = config.ngram_num_classes;
  const int first = std::min(3, classes - 1);
  std::vector<int32_t> map(static_cast<size_t>(config.vocab_size));
  for (int id = 0; id < config.vocab_size; ++id) {
    map[static_cast<size_t>(id)] = id < classes ? id : first + (id - classes) % (classes - first);
  }
  return map;
}

class Synthesizer {
 public:
  Synthesizer(const ModelConfig& config, const SynthOptions& options, Draft& draft)
      : config_(config), options_(options), draft_(draft) {}

  Result<SynthReport> Run() {
    std::vector<TensorSpec> specs = SpecsOf(config_);
    for (const TensorSpec& spec : specs) {
      report_.bytes += spec.num_bytes();
      if (IsHole(spec)) report_.sparse_bytes += spec.num_bytes();
    }
    report_.tensors = static_cast<int64_t>(specs.size());
    RETURN_IF_ERROR(CheckRoom());
    RETURN_IF_ERROR(WriteWeights(CutIntoShards(std::move(specs), options_.max_shard_bytes)));
    RETURN_IF_ERROR(WriteCompanions());
    RETURN_IF_ERROR(WriteText(draft_.Add("config.json"), ConfigJson(config_)));
    return report_;
  }

 private:
  bool IsHole(const TensorSpec& spec) const {
    return IsNgramTable(spec.name) && spec.dtype == DType::kF8E4M3 &&
           static_cast<uint64_t>(spec.num_bytes()) > options_.max_dense_table_bytes;
  }

  Status CheckRoom() const {
    std::error_code error;
    const std::filesystem::space_info space = std::filesystem::space(options_.dir, error);
    if (error) return OsError(options_.dir, "ask for free space", error);
    const uint64_t needed =
        static_cast<uint64_t>(report_.bytes - report_.sparse_bytes) + kRoomBytes;
    if (space.available >= needed) return Status::Ok();
    return ResourceExhausted(fmt::format("{}: found {} bytes free, expected at least {}",
                                         options_.dir.string(), space.available, needed));
  }

  Status WriteWeights(const std::vector<std::vector<TensorSpec>>& shards) {
    report_.files = static_cast<int>(shards.size());
    std::vector<std::string> names;
    for (size_t i = 0; i < shards.size(); ++i) {
      names.push_back(shards.size() == 1
                          ? "model.safetensors"
                          : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size()));
      RETURN_IF_ERROR(WriteShard(draft_.Add(names.back()), shards[i]));
    }
    if (shards.size() == 1) return Status::Ok();
    return WriteText(draft_.Add("model.safetensors.index.json"),
                     IndexJson(shards, names, report_.bytes));
  }

  Status WriteShard(const Path& path, const std::vector<TensorSpec>& specs) {
    ASSIGN_OR_RETURN(SafetensorsWriter writer,
                     SafetensorsWriter::Create(path, specs, {{"format", "pt"}}));
    for (const TensorSpec& spec : specs) {
      const auto bytes = static_cast<uint64_t>(spec.num_bytes());
      if (IsHole(spec)) {
        RETURN_IF_ERROR(writer.Skip(bytes));
        done_bytes_ += spec.num_bytes();
      } else {
        RETURN_IF_ERROR(WriteTensor(writer, TensorValues(options_.seed, spec), bytes));
      }
    }
    return writer.Commit();
  }

  Status WriteTensor(SafetensorsWriter& writer, const TensorValues& values, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += kBufferBytes) {
      buffer_.resize(std::min(kBufferBytes, bytes - at));
      values.Fill(at, buffer_);
      RETURN_IF_ERROR(writer.Write(std::span<const std::byte>(buffer_)));
      done_bytes_ += static_cast<int64_t>(buffer_.size());
      if (options_.on_progress) options_.on_progress(done_bytes_, report_.bytes);
      if (options_.should_stop && options_.should_stop()) {
        return Cancelled("stopped before the checkpoint was complete; nothing was kept");
      }
    }
    return Status::Ok();
  }

  Status WriteCompanions() {
    RETURN_IF_ERROR(WriteText(draft_.Add("tokenizer.json"),
                              SynthVocabulary(config_.vocab_size).TokenizerJson()));
    RETURN_IF_ERROR(WriteText(draft_.Add("tokenizer_config.json"), TokenizerConfigJson(config_)));
    RETURN_IF_ERROR(WriteText(draft_.Add("generation_config.json"), GenerationConfigJson(config_)));
    if (config_.ngram_layers.empty()) return Status::Ok();
    ASSIGN_OR_RETURN(const NgramLayout layout, NgramLayout::Derive(config_, TokenMap(config_)));
    return WriteText(draft_.Add("engram.json"), NgramJson(config_, layout));
  }

  const ModelConfig& config_;
  const SynthOptions& options_;
  Draft& draft_;
  SynthReport report_;
  int64_t done_bytes_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace

Result<SynthReport> Synthesize(const ModelConfig& config, const SynthOptions& options) {
  ASSIGN_OR_RETURN(Draft draft, Draft::Begin(options.dir));
  Result<SynthReport> report = Synthesizer(config, options, draft).Run();
  if (report.ok()) draft.Keep();
  return report;
}

}  // namespace deepinfer
