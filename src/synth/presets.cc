#include "synth/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/ngram_layout.h"
#include "synth/tokenizer_files.h"

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

// What the presets share; the numbers of the release.
ModelConfig CommonConfig() {
  ModelConfig c;
  c.swiglu_limit = 10;
  c.rms_norm_eps = 1e-20f;
  c.rope_theta = 10000;
  c.compress_rope_theta = 160000;
  c.yarn = {
      .factor = 16, .beta_fast = 32, .beta_slow = 1, .original_max_position_embeddings = 65536};
  c.routed_scaling_factor = 1.5f;
  c.num_streams = 4;
  c.hc_sinkhorn_iters = 20;
  c.hc_eps = 1e-6f;
  c.ngram_max_order = 4;
  c.ngram_pad_token = 2;
  c.num_draft_blocks = 3;
  c.draft_len = 5;
  c.bos_token = 0;
  c.eos_token = 1;
  c.pad_token = 2;
  return c;
}

// Two window layers, two of ratio 2 and a decoder of four.
void SmallLayerMap(ModelConfig& c) {
  c.num_layers = 8;
  c.compress_ratios = {0, 0, 2, 2, 1, 1, 1, 1};
  c.kv_source_layers = {2, 4};
  c.index_source_layers = {2, 4, 6};
  c.candidate_source_layer = 4;
  c.ngram_layers = {1, 2};
  c.draft_target_layers = {5, 6, 7};
}

ModelConfig TinyConfig() {
  ModelConfig c = CommonConfig();
  SmallLayerMap(c);
  c.vocab_size = 512;
  c.hidden_size = 128;
  c.moe_intermediate_size = 64;
  c.num_heads = 4;
  c.head_dim = 64;
  c.rope_dim = 16;
  c.q_lora_rank = 64;
  c.o_lora_rank = 32;
  c.o_groups = 2;
  c.max_position_embeddings = 4096;
  c.yarn.original_max_position_embeddings = 64;
  c.num_experts = 16;
  c.num_experts_per_token = 3;
  c.window_size = 8;
  c.index_num_heads = 4;
  c.index_head_dim = 32;
  c.index_top_k = 4;
  c.candidate_top_blocks = 3;
  c.candidate_block_size = 2;
  c.ngram_vocab_size = 97;
  c.ngram_num_heads = 2;
  c.ngram_head_dim = 32;
  c.ngram_num_classes = 256;
  c.draft_markov_rank = 32;
  c.draft_num_experts = 4;
  c.draft_num_experts_per_token = 2;
  c.has_vision = true;
  c.vision = {.num_layers = 2,
              .hidden_size = 64,
              .num_heads = 2,
              .intermediate_size = 96,
              .patch_size = 14,
              .rope_theta = 10000,
              .downsample_ratio = 3,
              .max_image_tokens = 64,
              .min_pixels = 7056};
  return c;
}

ModelConfig NanoConfig() {
  ModelConfig c = TinyConfig();
  c.vocab_size = 4096;
  c.hidden_size = 192;
  c.moe_intermediate_size = 96;
  c.rope_dim = 32;
  c.q_lora_rank = 96;
  c.o_lora_rank = 64;
  c.max_position_embeddings = 16384;
  c.yarn.original_max_position_embeddings = 65536;
  c.num_experts_per_token = 2;
  c.window_size = 128;
  c.index_head_dim = 64;
  c.index_top_k = 64;
  c.candidate_top_blocks = 32;
  c.candidate_block_size = 8;
  c.ngram_vocab_size = 1499;
  c.ngram_num_classes = 3424;
  c.vision.num_layers = 3;
  c.vision.hidden_size = 96;
  c.vision.num_heads = 3;
  c.vision.intermediate_size = 192;
  return c;
}

ModelConfig SliceConfig() {
  ModelConfig c = CommonConfig();
  c.num_layers = 4;
  c.compress_ratios = {0, 2, 1, 1};
  c.kv_source_layers = {1, 2};
  c.index_source_layers = {1, 2, 3};
  c.candidate_source_layer = 2;
  c.ngram_layers = {1};
  c.draft_target_layers = {1, 2, 3};
  c.vocab_size = 129280;
  c.hidden_size = 5120;
  c.moe_intermediate_size = 2304;
  c.num_heads = 64;
  c.head_dim = 512;
  c.rope_dim = 64;
  c.q_lora_rank = 1280;
  c.o_lora_rank = 1024;
  c.o_groups = 8;
  c.max_position_embeddings = 1048576;
  c.num_experts = 32;
  c.num_experts_per_token = 6;
  c.window_size = 128;
  c.index_num_heads = 32;
  c.index_head_dim = 128;
  c.index_top_k = 512;
  c.candidate_top_blocks = 2048;
  c.candidate_block_size = 8;
  // 24 primes from here on make 3.79 million rows of 264 bytes, 1 GB.
  c.ngram_vocab_size = 157'800;
  c.ngram_num_heads = 8;
  c.ngram_head_dim = 256;
  c.ngram_num_classes = 99092;
  c.draft_markov_rank = 256;
  c.draft_num_experts = 16;
  c.draft_num_experts_per_token = 3;
  return c;
}

ModelConfig BaseOf(Preset preset) {
  switch (preset) {
    case Preset::kTiny:
      return TinyConfig();
    case Preset::kNano:
      return NanoConfig();
    case Preset::kV41Slice:
      return SliceConfig();
  }
  return TinyConfig();
}

void CutAt(std::vector<int>& layers, int num_layers) {
  std::erase_if(layers, [num_layers](int layer) { return layer >= num_layers; });
}

// A decoder is one Full layer, then a Reindex layer every `period` layers with Reuse layers
// between.
void SetLayers(ModelConfig& c, int num_layers, int period) {
  for (int layer = c.num_layers; layer < num_layers; ++layer) {
    c.compress_ratios.push_back(1);
    if (layer - c.index_source_layers.back() == period) c.index_source_layers.push_back(layer);
  }
  c.num_layers = num_layers;
  c.compress_ratios.resize(static_cast<size_t>(num_layers));
  for (std::vector<int>* layers : {&c.kv_source_layers, &c.index_source_layers, &c.ngram_layers}) {
    CutAt(*layers, num_layers);
  }
  if (c.candidate_source_layer >= num_layers) c.candidate_source_layer = -1;
  const int targets = std::min<int>(num_layers, static_cast<int>(c.draft_target_layers.size()));
  c.draft_target_layers.clear();
  for (int i = num_layers - targets; i < num_layers; ++i) c.draft_target_layers.push_back(i);
}

// Ids and table sizes that follow from the rest.
void SetDependents(ModelConfig& c) {
  const SynthVocabulary vocabulary(c.vocab_size);
  c.image_token = c.has_vision ? vocabulary.image_token() : -1;
  c.draft_noise_token = vocabulary.system_token();
  c.ngram_num_classes = std::min(c.ngram_num_classes, c.vocab_size);
  c.num_experts_per_token = std::min(c.num_experts_per_token, c.num_experts);
  c.draft_num_experts_per_token = std::min(c.draft_num_experts_per_token, c.draft_num_experts);
  c.compress_ratios.resize(static_cast<size_t>(c.num_layers + c.num_draft_blocks), 0);
  c.ngram_table_rows = NgramLayout::DerivedTableRows(c);
}

// The shortest text of a float, so that the file says 1e-20 and not its fp64 neighbour.
Json Shortest(float value) { return Json::parse(fmt::format("{}", value)); }

void AddNgramMemory(const ModelConfig& c, Json& text) {
  text["engram_layer_ids"] = c.ngram_layers;
  text["engram_num_embeddings"] = c.ngram_table_rows;
  text["engram_max_ngram_size"] = c.ngram_max_order;
  text["engram_vocab_size"] = c.ngram_vocab_size;
  text["engram_n_heads"] = c.ngram_num_heads;
  text["engram_head_dim"] = c.ngram_head_dim;
  text["engram_pad_token_id"] = c.ngram_pad_token;
  text["engram_compressed_vocab_size"] = c.ngram_num_classes;
}

void AddDraft(const ModelConfig& c, Json& text) {
  text["num_nextn_predict_layers"] = c.num_draft_blocks;
  if (c.num_draft_blocks == 0) return;
  text["dspark_block_size"] = c.draft_len;
  text["dspark_noise_token_id"] = c.draft_noise_token;
  text["dspark_target_layer_ids"] = c.draft_target_layers;
  text["dspark_markov_rank"] = c.draft_markov_rank;
  text["dspark_n_routed_experts"] = c.draft_num_experts;
  text["dspark_num_experts_per_tok"] = c.draft_num_experts_per_token;
}

Json TextJson(const ModelConfig& c) {
  Json text = {{"model_type", "deepseek_v41_text"},
               {"vocab_size", c.vocab_size},
               {"hidden_size", c.hidden_size},
               {"moe_intermediate_size", c.moe_intermediate_size},
               {"num_hidden_layers", c.num_layers},
               {"num_attention_heads", c.num_heads},
               {"num_key_value_heads", 1},
               {"head_dim", c.head_dim},
               {"qk_rope_head_dim", c.rope_dim},
               {"q_lora_rank", c.q_lora_rank},
               {"o_lora_rank", c.o_lora_rank},
               {"o_groups", c.o_groups},
               {"hidden_act", "silu"},
               {"swiglu_limit", Shortest(c.swiglu_limit)},
               {"rms_norm_eps", Shortest(c.rms_norm_eps)},
               {"attention_bias", false},
               {"tie_word_embeddings", false},
               {"max_position_embeddings", c.max_position_embeddings},
               {"rope_theta", c.rope_theta},
               {"rope_scaling",
                {{"rope_type", "yarn"},
                 {"factor", c.yarn.factor},
                 {"beta_fast", c.yarn.beta_fast},
                 {"beta_slow", c.yarn.beta_slow},
                 {"original_max_position_embeddings", c.yarn.original_max_position_embeddings}}},
               {"n_routed_experts", c.num_experts},
               {"n_shared_experts", 1},
               {"num_experts_per_tok", c.num_experts_per_token},
               {"scoring_func", "sqrtsoftplus"},
               {"topk_method", "noaux_tc"},
               {"norm_topk_prob", true},
               {"routed_scaling_factor", Shortest(c.routed_scaling_factor)},
               {"sliding_window", c.window_size},
               {"compress_ratios", c.compress_ratios},
               {"compress_rope_theta", c.compress_rope_theta},
               {"kv_source_layer_ids", c.kv_source_layers},
               {"index_source_layer_ids", c.index_source_layers},
               {"index_n_heads", c.index_num_heads},
               {"index_head_dim", c.index_head_dim},
               {"index_topk", c.index_top_k}};
  if (c.candidate_source_layer >= 0) text["candidate_source_layer_id"] = c.candidate_source_layer;
  text["candidate_topk_blocks"] = c.candidate_top_blocks;
  text["candidate_block_size"] = c.candidate_block_size;
  text["hc_mult"] = c.num_streams;
  text["hc_sinkhorn_iters"] = c.hc_sinkhorn_iters;
  text["hc_eps"] = Shortest(c.hc_eps);
  if (!c.ngram_layers.empty()) AddNgramMemory(c, text);
  AddDraft(c, text);
  return text;
}

Json VisionJson(const VisionConfig& v) {
  Json json = {{"model_type", "deepseek_v41_vision"},
               {"num_hidden_layers", v.num_layers},
               {"hidden_size", v.hidden_size},
               {"num_attention_heads", v.num_heads},
               {"intermediate_size", v.intermediate_size},
               {"patch_size", v.patch_size},
               {"rope_theta", v.rope_theta},
               {"downsample_ratio", v.downsample_ratio},
               {"max_image_tokens", v.max_image_tokens},
               {"min_pixels", v.min_pixels},
               {"max_wh_ratio", nullptr}};
  if (v.max_wh_ratio > 0) json["max_wh_ratio"] = v.max_wh_ratio;
  return json;
}

}  // namespace

Result<ModelConfig> ConfigOf(Preset preset, const PresetChanges& changes) {
  ModelConfig c = BaseOf(preset);
  if (changes.layers) {
    if (*changes.layers < 1 || *changes.layers > 1024) {
      return InvalidArgument(
          fmt::format("--layers: found {}, expected 1 to 1024", *changes.layers));
    }
    SetLayers(c, *changes.layers, preset == Preset::kV41Slice ? 4 : 2);
  }
  c.num_experts = changes.experts.value_or(c.num_experts);
  c.draft_num_experts = changes.draft_experts.value_or(c.draft_num_experts);
  c.vocab_size = changes.vocab_size.value_or(c.vocab_size);
  c.max_position_embeddings = changes.max_position_embeddings.value_or(c.max_position_embeddings);
  if (c.vocab_size < SynthVocabulary::kMinSize) {
    return InvalidArgument(
        fmt::format("--vocab: found {}, expected at least {}: every byte and "
                    "every control token needs an id",
                    c.vocab_size, SynthVocabulary::kMinSize));
  }
  if (changes.no_ngram) c.ngram_layers.clear();
  if (changes.no_draft) c.num_draft_blocks = 0;
  if (changes.no_vision) c.has_vision = false;
  SetDependents(c);
  // The reader's own rules have the last word.
  Result<ModelConfig> parsed = ModelConfig::Parse(ConfigJson(c));
  if (!parsed.ok()) return InvalidArgument(parsed.status().message());
  return parsed;
}

std::string ConfigJson(const ModelConfig& c) {
  Json json = {{"architectures", Json::array({"DeepseekV41ForCausalLM"})},
               {"model_type", "deepseek_v41"},
               {"dtype", "bfloat16"},
               {"bos_token_id", c.bos_token},
               {"eos_token_id", c.eos_token},
               {"pad_token_id", c.pad_token}};
  if (c.image_token >= 0) json["image_token_id"] = c.image_token;
  json["quantization_config"] = {{"quant_method", "fp8"},
                                 {"activation_scheme", "dynamic"},
                                 {"weight_block_size", {32, 32}},
                                 {"scale_fmt", "ue8m0"},
                                 {"expert_dtype", "fp4"}};
  json["text_config"] = TextJson(c);
  if (c.has_vision) json["vision_config"] = VisionJson(c.vision);
  return json.dump(1) + "\n";
}

}  // namespace deepinfer
