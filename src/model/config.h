// Hyper-parameters of a checkpoint, read from its config.json (model.md section 1) and validated.
// Plain data: copy freely.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/file.h"

namespace deepinfer {

// rope_scaling of type yarn (section 4).
struct YarnConfig {
  double factor = 0;
  double beta_fast = 0;
  double beta_slow = 0;
  int64_t original_max_position_embeddings = 0;
};

struct VisionConfig {
  int num_layers = 0;
  int hidden_size = 0;
  int num_heads = 0;
  int intermediate_size = 0;
  int patch_size = 0;
  double rope_theta = 0;
  int downsample_ratio = 0;
  int max_image_tokens = 0;
  int64_t min_pixels = 0;
  double max_wh_ratio = 0;  // 0: none
};

// What a layer of the backbone is (section 3).
enum class LayerKind {
  kWindow,   // window attention only
  kFull,     // owns compressed KV, index keys and an indexer
  kReindex,  // own indexer queries over the keys and KV of the nearest KV source
  kReuse,    // KV and selection of the nearest sources
};

struct ModelConfig {
  // text_config
  int vocab_size = 0;
  int hidden_size = 0;
  int num_layers = 0;  // backbone, without draft blocks
  int moe_intermediate_size = 0;
  int num_heads = 0;
  int head_dim = 0;
  int rope_dim = 0;  // last channels of a head that rotate
  int q_lora_rank = 0;
  int o_lora_rank = 0;
  int o_groups = 0;
  float swiglu_limit = 0;
  float rms_norm_eps = 0;
  int64_t max_position_embeddings = 0;
  double rope_theta = 0;           // window-only layers, no YaRN
  double compress_rope_theta = 0;  // layers with ratio > 0, with YaRN
  YarnConfig yarn;
  int num_experts = 0;  // routed
  int num_experts_per_token = 0;
  float routed_scaling_factor = 0;
  int window_size = 0;
  std::vector<int> compress_ratios;      // [num_layers + num_draft_blocks], 0 = window only
  std::vector<int> kv_source_layers;     // ascending
  std::vector<int> index_source_layers;  // ascending; contains every KV source
  int index_num_heads = 0;
  int index_head_dim = 0;
  int index_top_k = 0;
  int candidate_source_layer = -1;  // -1: no hierarchical selection
  int candidate_top_blocks = 0;
  int candidate_block_size = 0;
  int num_streams = 0;  // hc_mult
  int hc_sinkhorn_iters = 0;
  float hc_eps = 0;

  // n-gram memory (Engram, section 9); empty vectors: none
  std::vector<int> ngram_layers;
  std::vector<int64_t> ngram_table_rows;  // one per ngram layer
  int ngram_max_order = 0;                // engram_max_ngram_size
  int64_t ngram_vocab_size = 0;           // the primes of the hash start here
  int ngram_num_heads = 0;
  int ngram_head_dim = 0;
  int ngram_pad_token = 0;
  int ngram_num_classes = 0;  // engram_compressed_vocab_size

  // DSpark draft head (section 10)
  int num_draft_blocks = 0;  // num_nextn_predict_layers
  int draft_len = 0;         // dspark_block_size
  int draft_noise_token = 0;
  std::vector<int> draft_target_layers;
  int draft_markov_rank = 0;
  int draft_num_experts = 0;
  int draft_num_experts_per_token = 0;

  // top level
  int bos_token = 0;
  int eos_token = 0;
  int pad_token = 0;
  int image_token = -1;  // -1: the model takes no images
  bool has_vision = false;
  VisionConfig vision;  // valid when has_vision

  // The JSON text without insignificant white space, for fingerprints.
  std::string canonical_text;

  // Parses and validates; every error names the key, what was found and what was expected.
  static Result<ModelConfig> Parse(std::string_view json);
  // Of a checkpoint directory, or of a config.json itself.
  static Result<ModelConfig> Load(const Path& path);

  // For a checkpoint without any tensor of the draft head.
  void DropDraftHead();

  LayerKind KindOf(int layer) const;
  // Nearest KV source / index source at or before a layer with compress ratio > 0.
  int KvSourceOf(int layer) const;
  int IndexSourceOf(int layer) const;
  // The first decoder layer: the last KV source (section 7.7); num_layers when there is none.
  int first_decoder_layer() const {
    return kv_source_layers.empty() ? num_layers : kv_source_layers.back();
  }
  int ngram_row_count() const { return (ngram_max_order - 1) * ngram_num_heads; }
};

}  // namespace deepinfer
