#include "model/config_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kv/layout.h"
#include "model/config.h"

namespace deepinfer {
namespace {

// The look-back buffer of the n-gram hash.
constexpr int kMaxNgramOrder = 16;
// Positions stay exact in fp32, where angles are formed.
constexpr int64_t kMaxPositions = int64_t{1} << 22;

Status Bad(const char* key, const std::string& found, const std::string& expected) {
  return CorruptData(fmt::format("config.json: {}: found {}, expected {}", key, found, expected));
}

Status InRange(const char* key, double value, double low, double high) {
  if (value >= low && value <= high) return Status::Ok();
  return Bad(key, fmt::format("{}", value), fmt::format("a value from {} to {}", low, high));
}

// FP8 and FP4 weights are stored in blocks of 32.
Status MultipleOf(const char* key, int64_t value, int64_t unit) {
  if (value > 0 && value % unit == 0) return Status::Ok();
  return Bad(key, fmt::format("{}", value), fmt::format("a positive multiple of {}", unit));
}

Status CheckSizes(const ModelConfig& c) {
  RETURN_IF_ERROR(InRange("text_config.vocab_size", c.vocab_size, 3, 1 << 24));
  RETURN_IF_ERROR(InRange("text_config.num_hidden_layers", c.num_layers, 1, 1024));
  RETURN_IF_ERROR(InRange("text_config.num_attention_heads", c.num_heads, 1, 1024));
  RETURN_IF_ERROR(InRange("text_config.o_groups", c.o_groups, 1, 1024));
  RETURN_IF_ERROR(InRange("text_config.hidden_size", c.hidden_size, 32, 1 << 17));
  RETURN_IF_ERROR(InRange("text_config.sliding_window", c.window_size, 1, 1 << 16));
  RETURN_IF_ERROR(InRange("text_config.hc_mult", c.num_streams, 1, 8));
  RETURN_IF_ERROR(InRange("text_config.hc_sinkhorn_iters", c.hc_sinkhorn_iters, 1, 1000));
  RETURN_IF_ERROR(InRange("text_config.hc_eps", c.hc_eps, 0, 1));
  RETURN_IF_ERROR(InRange("text_config.rms_norm_eps", c.rms_norm_eps, 0, 1));
  RETURN_IF_ERROR(MultipleOf("text_config.hidden_size", c.hidden_size, 32));
  RETURN_IF_ERROR(MultipleOf("text_config.moe_intermediate_size", c.moe_intermediate_size, 32));
  RETURN_IF_ERROR(MultipleOf("text_config.q_lora_rank", c.q_lora_rank, 32));
  RETURN_IF_ERROR(MultipleOf("text_config.o_lora_rank", c.o_lora_rank, 32));
  RETURN_IF_ERROR(MultipleOf("text_config.head_dim", c.head_dim, 32));
  RETURN_IF_ERROR(MultipleOf("text_config.qk_rope_head_dim", c.rope_dim, 2));
  RETURN_IF_ERROR(InRange("text_config.qk_rope_head_dim", c.rope_dim, 2, c.head_dim));
  if (c.num_heads % c.o_groups != 0) {
    return Bad("text_config.o_groups", fmt::format("{}", c.o_groups),
               fmt::format("a divisor of num_attention_heads, {}", c.num_heads));
  }
  RETURN_IF_ERROR(InRange("text_config.max_position_embeddings",
                          static_cast<double>(c.max_position_embeddings), 1,
                          static_cast<double>(kMaxPositions)));
  RETURN_IF_ERROR(InRange("text_config.rope_theta", c.rope_theta, 1, 1e12));
  RETURN_IF_ERROR(InRange("text_config.compress_rope_theta", c.compress_rope_theta, 1, 1e12));
  RETURN_IF_ERROR(InRange("text_config.rope_scaling.factor", c.yarn.factor, 1, 1e6));
  RETURN_IF_ERROR(InRange("text_config.rope_scaling.beta_fast", c.yarn.beta_fast, 1e-3, 1e6));
  RETURN_IF_ERROR(InRange("text_config.rope_scaling.beta_slow", c.yarn.beta_slow, 1e-3, 1e6));
  return InRange("text_config.rope_scaling.original_max_position_embeddings",
                 static_cast<double>(c.yarn.original_max_position_embeddings), 1,
                 static_cast<double>(kMaxPositions));
}

// Ascending layer numbers inside the backbone.
Status CheckLayerList(const char* key, const std::vector<int>& layers, int num_layers) {
  const bool ascending =
      std::adjacent_find(layers.begin(), layers.end(), std::greater_equal<>()) == layers.end();
  const bool inside = layers.empty() || (layers.front() >= 0 && layers.back() < num_layers);
  if (ascending && inside) return Status::Ok();
  return Bad(key, fmt::format("[{}]", fmt::join(layers, ", ")),
             fmt::format("ascending layers from 0 to {}", num_layers - 1));
}

bool Contains(const std::vector<int>& layers, int layer) {
  return std::binary_search(layers.begin(), layers.end(), layer);
}

// Every compressed layer reads entries of its own ratio from the nearest sources before it.
Status CheckSourcesOf(const ModelConfig& c, int layer) {
  const int ratio = c.compress_ratios[static_cast<size_t>(layer)];
  if (ratio == 0) {
    if (!Contains(c.index_source_layers, layer)) return Status::Ok();
    return Bad("text_config.index_source_layer_ids", fmt::format("window-only layer {}", layer),
               "layers with a compress ratio above 0");
  }
  if (ratio < 0 || kBlockTokens % ratio != 0) {
    return Bad("text_config.compress_ratios", fmt::format("{} at layer {}", ratio, layer),
               fmt::format("0 or a divisor of {}", kBlockTokens));
  }
  if (c.kv_source_layers.empty() || c.kv_source_layers.front() > layer) {
    return Bad("text_config.kv_source_layer_ids", fmt::format("no source for layer {}", layer),
               "a source at or before every compressed layer");
  }
  const int source = c.KvSourceOf(layer);
  const int source_ratio = c.compress_ratios[static_cast<size_t>(source)];
  if (source_ratio != ratio) {
    return Bad("text_config.compress_ratios", fmt::format("{} at layer {}", ratio, layer),
               fmt::format("{}, the ratio of its source layer {}", source_ratio, source));
  }
  return Status::Ok();
}

Status CheckLayerMap(const ModelConfig& c) {
  const auto expected = static_cast<size_t>(c.num_layers + c.num_draft_blocks);
  if (c.compress_ratios.size() != expected) {
    return Bad("text_config.compress_ratios", fmt::format("{} entries", c.compress_ratios.size()),
               fmt::format("{}: num_hidden_layers + num_nextn_predict_layers", expected));
  }
  for (size_t i = static_cast<size_t>(c.num_layers); i < expected; ++i) {
    if (c.compress_ratios[i] != 0) {
      return Bad("text_config.compress_ratios",
                 fmt::format("{} at a draft block", c.compress_ratios[i]),
                 "0: draft blocks attend to their window only");
    }
  }
  RETURN_IF_ERROR(
      CheckLayerList("text_config.kv_source_layer_ids", c.kv_source_layers, c.num_layers));
  RETURN_IF_ERROR(
      CheckLayerList("text_config.index_source_layer_ids", c.index_source_layers, c.num_layers));
  for (const int source : c.kv_source_layers) {
    if (!Contains(c.index_source_layers, source)) {
      return Bad("text_config.index_source_layer_ids", fmt::format("no layer {}", source),
                 "every KV source among the index sources");
    }
    if (c.compress_ratios[static_cast<size_t>(source)] == 0) {
      return Bad("text_config.kv_source_layer_ids", fmt::format("window-only layer {}", source),
                 "layers with a compress ratio above 0");
    }
  }
  for (int layer = 0; layer < c.num_layers; ++layer) RETURN_IF_ERROR(CheckSourcesOf(c, layer));
  return Status::Ok();
}

Status CheckIndexer(const ModelConfig& c) {
  if (c.index_source_layers.empty()) return Status::Ok();
  RETURN_IF_ERROR(InRange("text_config.index_n_heads", c.index_num_heads, 1, 1024));
  RETURN_IF_ERROR(MultipleOf("text_config.index_head_dim", c.index_head_dim, 32));
  RETURN_IF_ERROR(InRange("text_config.index_topk", c.index_top_k, 1, 1 << 16));
  if (c.index_head_dim < c.rope_dim) {
    return Bad("text_config.index_head_dim", fmt::format("{}", c.index_head_dim),
               fmt::format("at least qk_rope_head_dim, {}", c.rope_dim));
  }
  if (c.candidate_source_layer < 0) return Status::Ok();
  if (!Contains(c.kv_source_layers, c.candidate_source_layer) ||
      c.candidate_source_layer != c.kv_source_layers.back()) {
    return Bad("text_config.candidate_source_layer_id", fmt::format("{}", c.candidate_source_layer),
               "the last KV source");
  }
  RETURN_IF_ERROR(InRange("text_config.candidate_topk_blocks", c.candidate_top_blocks, 1, 1 << 20));
  return InRange("text_config.candidate_block_size", c.candidate_block_size, 1, 1 << 16);
}

Status CheckExperts(const ModelConfig& c) {
  RETURN_IF_ERROR(InRange("text_config.n_routed_experts", c.num_experts, 1, 1 << 16));
  RETURN_IF_ERROR(
      InRange("text_config.num_experts_per_tok", c.num_experts_per_token, 1, c.num_experts));
  RETURN_IF_ERROR(InRange("text_config.swiglu_limit", c.swiglu_limit, 1e-6, 1e6));
  return InRange("text_config.routed_scaling_factor", c.routed_scaling_factor, 1e-6, 1e6);
}

Status CheckNgramMemory(const ModelConfig& c) {
  if (c.ngram_layers.empty()) return Status::Ok();
  RETURN_IF_ERROR(CheckLayerList("text_config.engram_layer_ids", c.ngram_layers, c.num_layers));
  if (c.ngram_table_rows.size() != c.ngram_layers.size()) {
    return Bad("text_config.engram_num_embeddings",
               fmt::format("{} entries", c.ngram_table_rows.size()),
               fmt::format("{}, one per engram layer", c.ngram_layers.size()));
  }
  for (const int64_t rows : c.ngram_table_rows) {
    RETURN_IF_ERROR(
        InRange("text_config.engram_num_embeddings", static_cast<double>(rows), 1, 1e12));
  }
  RETURN_IF_ERROR(
      InRange("text_config.engram_max_ngram_size", c.ngram_max_order, 2, kMaxNgramOrder));
  RETURN_IF_ERROR(InRange("text_config.engram_n_heads", c.ngram_num_heads, 1, 1024));
  RETURN_IF_ERROR(MultipleOf("text_config.engram_head_dim", c.ngram_head_dim, 32));
  RETURN_IF_ERROR(
      InRange("text_config.engram_vocab_size", static_cast<double>(c.ngram_vocab_size), 2, 1e12));
  RETURN_IF_ERROR(
      InRange("text_config.engram_pad_token_id", c.ngram_pad_token, 0, c.vocab_size - 1));
  return InRange("text_config.engram_compressed_vocab_size", c.ngram_num_classes, 1, c.vocab_size);
}

Status CheckDraft(const ModelConfig& c) {
  if (c.num_draft_blocks == 0) return Status::Ok();
  RETURN_IF_ERROR(InRange("text_config.num_nextn_predict_layers", c.num_draft_blocks, 0, 64));
  RETURN_IF_ERROR(InRange("text_config.dspark_block_size", c.draft_len, 1, 15));
  RETURN_IF_ERROR(
      InRange("text_config.dspark_noise_token_id", c.draft_noise_token, 0, c.vocab_size - 1));
  RETURN_IF_ERROR(
      CheckLayerList("text_config.dspark_target_layer_ids", c.draft_target_layers, c.num_layers));
  RETURN_IF_ERROR(InRange("text_config.dspark_target_layer_ids (count)",
                          static_cast<double>(c.draft_target_layers.size()), 1, 64));
  RETURN_IF_ERROR(MultipleOf("text_config.dspark_markov_rank", c.draft_markov_rank, 32));
  RETURN_IF_ERROR(InRange("text_config.dspark_n_routed_experts", c.draft_num_experts, 1, 1 << 16));
  return InRange("text_config.dspark_num_experts_per_tok", c.draft_num_experts_per_token, 1,
                 c.draft_num_experts);
}

Status CheckVision(const ModelConfig& c) {
  if (!c.has_vision) return Status::Ok();
  const VisionConfig& v = c.vision;
  RETURN_IF_ERROR(InRange("vision_config.num_hidden_layers", v.num_layers, 1, 1024));
  RETURN_IF_ERROR(InRange("vision_config.num_attention_heads", v.num_heads, 1, 1024));
  RETURN_IF_ERROR(InRange("vision_config.hidden_size", v.hidden_size, 4, 1 << 16));
  RETURN_IF_ERROR(MultipleOf("vision_config.hidden_size", v.hidden_size, int64_t{4} * v.num_heads));
  RETURN_IF_ERROR(InRange("vision_config.intermediate_size", v.intermediate_size, 1, 1 << 17));
  RETURN_IF_ERROR(InRange("vision_config.patch_size", v.patch_size, 1, 256));
  RETURN_IF_ERROR(InRange("vision_config.rope_theta", v.rope_theta, 1, 1e12));
  RETURN_IF_ERROR(InRange("vision_config.downsample_ratio", v.downsample_ratio, 1, 16));
  RETURN_IF_ERROR(InRange("vision_config.max_image_tokens", v.max_image_tokens, 5, 1 << 20));
  RETURN_IF_ERROR(InRange("vision_config.min_pixels", static_cast<double>(v.min_pixels), 0, 1e12));
  return InRange("image_token_id", c.image_token, 0, c.vocab_size - 1);
}

}  // namespace

Status CheckConfig(const ModelConfig& c) {
  RETURN_IF_ERROR(CheckSizes(c));
  RETURN_IF_ERROR(CheckLayerMap(c));
  RETURN_IF_ERROR(CheckIndexer(c));
  RETURN_IF_ERROR(CheckExperts(c));
  RETURN_IF_ERROR(CheckNgramMemory(c));
  RETURN_IF_ERROR(CheckDraft(c));
  RETURN_IF_ERROR(CheckVision(c));
  RETURN_IF_ERROR(InRange("bos_token_id", c.bos_token, 0, c.vocab_size - 1));
  RETURN_IF_ERROR(InRange("eos_token_id", c.eos_token, 0, c.vocab_size - 1));
  return InRange("pad_token_id", c.pad_token, 0, c.vocab_size - 1);
}

}  // namespace deepinfer
