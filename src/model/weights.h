// The tensors of a checkpoint under the names the forward pass uses: views into the mapped files,
// bound and checked once at load.  Routed experts and n-gram tables are not here; they are reached
// through ExpertSource and NgramSource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "weights/checkpoint.h"

namespace deepinfer {

struct HyperConnectionWeights {
  WeightView fn;                 // [S*(2+S), S*hidden] fp32
  const float* base = nullptr;   // [S*(2+S)]
  const float* scale = nullptr;  // [3]
};

struct AttentionWeights {
  WeightView wq_a;                    // [q_lora_rank, hidden] FP8
  const uint16_t* q_norm = nullptr;   // [q_lora_rank] bf16
  WeightView wq_b;                    // [num_heads*head_dim, q_lora_rank] FP8
  WeightView wkv;                     // [head_dim, hidden] FP8
  const uint16_t* kv_norm = nullptr;  // [head_dim] bf16
  const float* sink = nullptr;        // [num_heads]
  WeightView wo_a;                    // [o_groups*o_lora_rank, num_heads*head_dim/o_groups] FP8
  WeightView wo_b;                    // [hidden, o_groups*o_lora_rank] FP8
};

// Of a KV source.
struct CompressorWeights {
  WeightView wkv;                          // [head_dim, hidden] bf16
  WeightView wgate;                        // the same; unset for ratio 1
  const uint16_t* norm = nullptr;          // [head_dim] bf16
  WeightView index_wk;                     // [index_head_dim, head_dim] bf16
  const uint16_t* index_k_norm = nullptr;  // [index_head_dim] bf16
};

// Of an index source.
struct IndexerWeights {
  WeightView wq_b;          // [index_num_heads*index_head_dim, q_lora_rank] FP8
  WeightView weights_proj;  // [index_num_heads, hidden] bf16
};

struct FfnWeights {
  WeightView w1, w3;  // gate, up [moe_intermediate_size, hidden]
  WeightView w2;      // [hidden, moe_intermediate_size]
};

struct MoeWeights {
  WeightView gate;                    // [num_experts, hidden] bf16
  const float* bias = nullptr;        // [num_experts], text rows
  const float* bias_image = nullptr;  // [num_experts], image rows
  FfnWeights shared;                  // FP8
};

struct NgramWeights {
  WeightView wkv;                      // [(S+1)*hidden, row_count*ngram_head_dim] FP8
  const uint16_t* q_weight = nullptr;  // [S, hidden] bf16
  const uint16_t* k_weight = nullptr;  // [S, hidden] bf16
};

struct LayerWeights {
  const uint16_t* attn_norm = nullptr;  // [hidden] bf16
  const uint16_t* ffn_norm = nullptr;   // [hidden] bf16
  HyperConnectionWeights hc_attn, hc_ffn;
  AttentionWeights attention;
  std::optional<CompressorWeights> compressor;
  std::optional<IndexerWeights> indexer;
  MoeWeights moe;
  std::optional<NgramWeights> ngram;
};

// The three learnt rows of an image span (model.md section 11.4); null without vision.
struct ImageMarkRows {
  const uint16_t* start = nullptr;  // [hidden] bf16
  const uint16_t* newline = nullptr;
  const uint16_t* end = nullptr;
};

// Views live as long as the Checkpoint they were bound from, and as this object (which owns aligned
// copies of the few tensors that a file stores at an odd address).  Move-only, immutable.
struct ModelWeights {
  const uint16_t* embed = nullptr;   // [vocab_size, hidden] bf16
  const uint16_t* norm = nullptr;    // [hidden] bf16
  WeightView head;                   // [vocab_size, hidden] bf16
  std::vector<LayerWeights> layers;  // [num_layers]
  ImageMarkRows image_marks;
  std::vector<std::unique_ptr<std::byte[]>> aligned_copies;

  // Precondition: the checkpoint was validated against the config's manifest.
  static ModelWeights Bind(const Checkpoint& checkpoint, const ModelConfig& config);
};

}  // namespace deepinfer
