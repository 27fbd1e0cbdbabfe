#include "model/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "model/config_rules.h"

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
constexpr int64_t kMaxExactInteger = int64_t{1} << 53;

std::string_view TypeName(dom::element_type type) {
  switch (type) {
    case dom::element_type::ARRAY:
      return "an array";
    case dom::element_type::OBJECT:
      return "an object";
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
      return "an integer";
    case dom::element_type::DOUBLE:
      return "a fraction";
    case dom::element_type::STRING:
      return "a string";
    case dom::element_type::BOOL:
      return "a boolean";
    case dom::element_type::NULL_VALUE:
      return "null";
  }
  return "something else";
}

// Typed reads of one JSON object.  The first failure is kept; later reads return zeros.
class Section {
 public:
  Section(dom::object object, std::string path, Status& status)
      : object_(object), path_(std::move(path)), status_(status) {
    // Of a key that stands twice, readers take one or the other.
    std::set<std::string_view> keys;
    for (const dom::key_value_pair member : object_) {
      if (keys.insert(member.key).second) continue;
      Fail(ErrorCode::kCorruptData, std::string(member.key).c_str(), "the key twice", "it once");
    }
  }

  int64_t Integer(const char* key) { return ReadInteger(key, Find(key)); }
  int64_t IntegerOr(const char* key, int64_t fallback) {
    dom::element element;
    const bool absent = object_.at_key(key).get(element) != simdjson::SUCCESS || element.is_null();
    return absent ? fallback : ReadInteger(key, element);
  }
  int Int(const char* key) { return Narrow(key, Integer(key)); }
  int IntOr(const char* key, int fallback) { return Narrow(key, IntegerOr(key, fallback)); }

  double Number(const char* key) {
    const std::optional<dom::element> element = Find(key);
    double value = 0;
    if (element && element->get(value) != simdjson::SUCCESS) Mismatch(key, *element, "a number");
    return value;
  }
  double NumberOr(const char* key, double fallback) {
    dom::element element;
    const bool absent = object_.at_key(key).get(element) != simdjson::SUCCESS || element.is_null();
    return absent ? fallback : Number(key);
  }

  std::vector<int64_t> Integers(const char* key) {
    std::vector<int64_t> values;
    const std::optional<dom::element> element = Find(key);
    if (!element) return values;
    dom::array array;
    if (element->get(array) != simdjson::SUCCESS) {
      Mismatch(key, *element, "an array of integers");
      return values;
    }
    for (const dom::element item : array) values.push_back(ReadInteger(key, item));
    return values;
  }
  std::vector<int> Ints(const char* key) {
    std::vector<int> values;
    for (const int64_t value : Integers(key)) values.push_back(Narrow(key, value));
    return values;
  }

  // The key must have this value: anything else is another model.
  void RequireText(const char* key, std::string_view expected) {
    if (Find(key)) ExpectText(key, expected);
  }
  // The same for a key that may be absent.
  void ExpectText(const char* key, std::string_view expected) {
    dom::element element;
    if (object_.at_key(key).get(element) != simdjson::SUCCESS) return;
    std::string_view text;
    if (element.get(text) != simdjson::SUCCESS) {
      Mismatch(key, element, fmt::format("'{}'", expected));
    } else if (text != expected) {
      Fail(ErrorCode::kUnsupported, key, fmt::format("'{}'", text), fmt::format("'{}'", expected));
    }
  }
  // A list of texts, which may be absent, must contain this one.
  void ExpectOneOf(const char* key, std::string_view expected) {
    dom::element element;
    if (object_.at_key(key).get(element) != simdjson::SUCCESS) return;
    dom::array array;
    if (element.get(array) != simdjson::SUCCESS) return Mismatch(key, element, "an array of names");
    std::vector<std::string_view> names;
    for (const dom::element item : array) {
      std::string_view name;
      if (item.get(name) != simdjson::SUCCESS) return Mismatch(key, item, "names");
      names.push_back(name);
    }
    if (std::find(names.begin(), names.end(), expected) != names.end()) return;
    Fail(ErrorCode::kUnsupported, key, fmt::format("[{}]", fmt::join(names, ", ")),
         fmt::format("'{}' among them", expected));
  }
  void ExpectInteger(const char* key, int64_t expected) {
    const int64_t found = IntegerOr(key, expected);
    if (found != expected) {
      Fail(ErrorCode::kUnsupported, key, fmt::format("{}", found), fmt::format("{}", expected));
    }
  }
  void ExpectBool(const char* key, bool expected) {
    dom::element element;
    if (object_.at_key(key).get(element) != simdjson::SUCCESS) return;
    bool found = false;
    if (element.get(found) != simdjson::SUCCESS || found != expected) {
      Fail(ErrorCode::kUnsupported, key,
           element.is_bool() ? (found ? "true" : "false") : TypeName(element.type()),
           expected ? "true" : "false");
    }
  }

  bool Has(const char* key) const {
    dom::element element;
    return object_.at_key(key).get(element) == simdjson::SUCCESS && !element.is_null();
  }
  // An empty section, with the failure noted, when the key is no object.
  std::optional<Section> Child(const char* key) {
    const std::optional<dom::element> element = Find(key);
    if (!element) return std::nullopt;
    dom::object object;
    if (element->get(object) != simdjson::SUCCESS) {
      Mismatch(key, *element, "an object");
      return std::nullopt;
    }
    return Section(object, PathOf(key), status_);
  }

  void Fail(ErrorCode code, const char* key, std::string_view found, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = Status(
        code, fmt::format("config.json: {}: found {}, expected {}", PathOf(key), found, expected));
  }

 private:
  std::string PathOf(const char* key) const {
    return path_.empty() ? key : fmt::format("{}.{}", path_, key);
  }
  std::optional<dom::element> Find(const char* key) {
    dom::element element;
    if (object_.at_key(key).get(element) == simdjson::SUCCESS) return element;
    Fail(ErrorCode::kCorruptData, key, "nothing", "a value");
    return std::nullopt;
  }
  void Mismatch(const char* key, dom::element element, std::string_view expected) {
    Fail(ErrorCode::kCorruptData, key, TypeName(element.type()), expected);
  }
  int64_t ReadInteger(const char* key, const std::optional<dom::element>& element) {
    int64_t value = 0;
    if (!element) return value;
    // A number that does not fit 64 bits, or has a fraction, is not an integer to the reader.
    if (element->get(value) != simdjson::SUCCESS) Mismatch(key, *element, "an integer");
    if (value > kMaxExactInteger || value < -kMaxExactInteger) {
      Fail(ErrorCode::kCorruptData, key, fmt::format("{}", value),
           "an integer within 2^53, beyond which JSON writers round");
    }
    return value;
  }
  int Narrow(const char* key, int64_t value) {
    if (value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max()) {
      return static_cast<int>(value);
    }
    Fail(ErrorCode::kCorruptData, key, fmt::format("{}", value), "a 32-bit integer");
    return 0;
  }

  dom::object object_;
  std::string path_;
  Status& status_;
};

void ReadQuantization(Section& top) {
  std::optional<Section> q = top.Child("quantization_config");
  if (!q) return;
  q->RequireText("quant_method", "fp8");
  q->ExpectText("activation_scheme", "dynamic");
  q->RequireText("scale_fmt", "ue8m0");
  q->RequireText("expert_dtype", "fp4");
  const std::vector<int64_t> block = q->Integers("weight_block_size");
  if (block != std::vector<int64_t>{32, 32}) {
    q->Fail(ErrorCode::kUnsupported, "weight_block_size",
            fmt::format("[{}]", fmt::join(block, ", ")), "[32, 32]");
  }
}

void ReadAttention(Section& t, ModelConfig& c) {
  c.num_heads = t.Int("num_attention_heads");
  t.ExpectInteger("num_key_value_heads", 1);
  c.head_dim = t.Int("head_dim");
  c.rope_dim = t.Int("qk_rope_head_dim");
  c.q_lora_rank = t.Int("q_lora_rank");
  c.o_lora_rank = t.Int("o_lora_rank");
  c.o_groups = t.Int("o_groups");
  t.ExpectBool("attention_bias", false);
  t.ExpectBool("tie_word_embeddings", false);
  c.max_position_embeddings = t.Integer("max_position_embeddings");
  c.rope_theta = t.Number("rope_theta");
  c.compress_rope_theta = t.Number("compress_rope_theta");
  c.window_size = t.Int("sliding_window");
  c.compress_ratios = t.Ints("compress_ratios");
  c.kv_source_layers = t.Ints("kv_source_layer_ids");
  c.index_source_layers = t.Ints("index_source_layer_ids");
  c.index_num_heads = t.Int("index_n_heads");
  c.index_head_dim = t.Int("index_head_dim");
  c.index_top_k = t.Int("index_topk");
  c.candidate_source_layer = t.IntOr("candidate_source_layer_id", -1);
  c.candidate_top_blocks = t.IntOr("candidate_topk_blocks", 0);
  c.candidate_block_size = t.IntOr("candidate_block_size", 0);
  std::optional<Section> yarn = t.Child("rope_scaling");
  if (!yarn) return;
  yarn->ExpectText("rope_type", "yarn");
  c.yarn.factor = yarn->Number("factor");
  c.yarn.beta_fast = yarn->Number("beta_fast");
  c.yarn.beta_slow = yarn->Number("beta_slow");
  c.yarn.original_max_position_embeddings = yarn->Integer("original_max_position_embeddings");
}

void ReadExperts(Section& t, ModelConfig& c) {
  c.moe_intermediate_size = t.Int("moe_intermediate_size");
  c.num_experts = t.Int("n_routed_experts");
  t.ExpectInteger("n_shared_experts", 1);
  c.num_experts_per_token = t.Int("num_experts_per_tok");
  t.ExpectText("scoring_func", "sqrtsoftplus");
  t.ExpectText("topk_method", "noaux_tc");
  t.ExpectBool("norm_topk_prob", true);
  t.ExpectText("hidden_act", "silu");
  c.routed_scaling_factor = static_cast<float>(t.Number("routed_scaling_factor"));
  c.swiglu_limit = static_cast<float>(t.Number("swiglu_limit"));
}

void ReadNgramMemory(Section& t, ModelConfig& c) {
  if (!t.Has("engram_layer_ids")) return;
  c.ngram_layers = t.Ints("engram_layer_ids");
  if (c.ngram_layers.empty()) return;
  c.ngram_table_rows = t.Integers("engram_num_embeddings");
  c.ngram_max_order = t.Int("engram_max_ngram_size");
  c.ngram_vocab_size = t.Integer("engram_vocab_size");
  c.ngram_num_heads = t.Int("engram_n_heads");
  c.ngram_head_dim = t.Int("engram_head_dim");
  c.ngram_pad_token = t.Int("engram_pad_token_id");
  c.ngram_num_classes = t.Int("engram_compressed_vocab_size");
}

void ReadDraft(Section& t, ModelConfig& c) {
  c.num_draft_blocks = t.IntOr("num_nextn_predict_layers", 0);
  if (c.num_draft_blocks == 0) return;
  c.draft_len = t.Int("dspark_block_size");
  c.draft_noise_token = t.Int("dspark_noise_token_id");
  c.draft_target_layers = t.Ints("dspark_target_layer_ids");
  c.draft_markov_rank = t.Int("dspark_markov_rank");
  c.draft_num_experts = t.Int("dspark_n_routed_experts");
  c.draft_num_experts_per_token = t.Int("dspark_num_experts_per_tok");
}

void ReadVision(Section& top, ModelConfig& c) {
  if (!top.Has("vision_config")) return;
  std::optional<Section> v = top.Child("vision_config");
  if (!v) return;
  v->ExpectText("model_type", "deepseek_v41_vision");
  c.has_vision = true;
  c.vision.num_layers = v->Int("num_hidden_layers");
  c.vision.hidden_size = v->Int("hidden_size");
  c.vision.num_heads = v->Int("num_attention_heads");
  c.vision.intermediate_size = v->Int("intermediate_size");
  c.vision.patch_size = v->Int("patch_size");
  c.vision.rope_theta = v->Number("rope_theta");
  c.vision.downsample_ratio = v->Int("downsample_ratio");
  c.vision.max_image_tokens = v->Int("max_image_tokens");
  c.vision.min_pixels = v->Integer("min_pixels");
  c.vision.max_wh_ratio = v->NumberOr("max_wh_ratio", 0);
}

void ReadText(Section& t, ModelConfig& c) {
  t.ExpectText("model_type", "deepseek_v41_text");
  c.vocab_size = t.Int("vocab_size");
  c.hidden_size = t.Int("hidden_size");
  c.num_layers = t.Int("num_hidden_layers");
  c.rms_norm_eps = static_cast<float>(t.Number("rms_norm_eps"));
  c.num_streams = t.Int("hc_mult");
  c.hc_sinkhorn_iters = t.Int("hc_sinkhorn_iters");
  c.hc_eps = static_cast<float>(t.Number("hc_eps"));
  ReadAttention(t, c);
  ReadExperts(t, c);
  ReadNgramMemory(t, c);
  ReadDraft(t, c);
}

int NearestSource(const std::vector<int>& sources, int layer) {
  const auto after = std::upper_bound(sources.begin(), sources.end(), layer);
  return *(after - 1);
}

}  // namespace

Result<ModelConfig> ModelConfig::Parse(std::string_view json) {
  dom::parser parser;
  dom::element root;
  const simdjson::padded_string padded(json);
  if (const auto error = parser.parse(padded).get(root); error != simdjson::SUCCESS) {
    return CorruptData(fmt::format("config.json: not JSON: {}", simdjson::error_message(error)));
  }
  dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    return CorruptData(
        fmt::format("config.json: found {}, expected an object", TypeName(root.type())));
  }
  Status status;
  ModelConfig c;
  Section top(object, "", status);
  top.RequireText("model_type", "deepseek_v41");
  top.ExpectOneOf("architectures", "DeepseekV41ForCausalLM");
  if (!status.ok()) return status;  // another model: say so rather than name its missing keys
  c.bos_token = top.Int("bos_token_id");
  c.eos_token = top.Int("eos_token_id");
  c.pad_token = top.IntOr("pad_token_id", 2);
  c.image_token = top.IntOr("image_token_id", -1);
  ReadQuantization(top);
  if (std::optional<Section> text = top.Child("text_config")) ReadText(*text, c);
  ReadVision(top, c);
  if (!status.ok()) return status;
  RETURN_IF_ERROR(CheckConfig(c));
  c.canonical_text = simdjson::minify(root);
  return c;
}

Result<ModelConfig> ModelConfig::Load(const Path& path) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  if (!is_file && !std::filesystem::is_directory(path, error)) {
    return NotFound(
        fmt::format("{}: found no such directory, expected a checkpoint directory", path.string()));
  }
  const Path file = is_file ? path : path / "config.json";
  ASSIGN_OR_RETURN(const std::string json, ReadFile(file, kMaxConfigBytes));
  Result<ModelConfig> config = Parse(json);
  if (!config.ok()) return std::move(config).status().WithContext(path.string());
  return config;
}

void ModelConfig::DropDraftHead() {
  compress_ratios.resize(static_cast<size_t>(num_layers));
  num_draft_blocks = 0;
  draft_target_layers.clear();
}

LayerKind ModelConfig::KindOf(int layer) const {
  if (compress_ratios[static_cast<size_t>(layer)] == 0) return LayerKind::kWindow;
  if (std::binary_search(kv_source_layers.begin(), kv_source_layers.end(), layer)) {
    return LayerKind::kFull;
  }
  const bool reindex =
      std::binary_search(index_source_layers.begin(), index_source_layers.end(), layer);
  return reindex ? LayerKind::kReindex : LayerKind::kReuse;
}

int ModelConfig::KvSourceOf(int layer) const { return NearestSource(kv_source_layers, layer); }

int ModelConfig::IndexSourceOf(int layer) const {
  return NearestSource(index_source_layers, layer);
}

}  // namespace deepinfer
