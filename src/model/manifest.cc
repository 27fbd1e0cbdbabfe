#include "model/manifest.h"

#include <fmt/format.h>

#include <algorithm>

namespace deepinfer {
namespace {

constexpr int64_t kScaleBlock = 32;

int64_t Blocks(int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; }

// Collects entries under a growing name.
class Builder {
 public:
  explicit Builder(const ModelConfig& config) : c_(config) {}

  std::vector<ManifestEntry> Build() {
    Top();
    for (int layer = 0; layer < c_.num_layers; ++layer) Layer(layer);
    for (int block = 0; block < c_.num_draft_blocks; ++block) DraftBlock(block);
    if (c_.has_vision) Vision();
    return std::move(entries_);
  }

 private:
  void Add(std::string name, ModelPart part, DType dtype, std::vector<int64_t> shape) {
    if (forced_part_) part = *forced_part_;
    entries_.push_back({{std::move(name), dtype, std::move(shape)}, part});
  }
  void Bf16(const std::string& name, ModelPart part, std::vector<int64_t> shape) {
    Add(name, part, DType::kBf16, std::move(shape));
  }
  void F32(const std::string& name, ModelPart part, std::vector<int64_t> shape) {
    Add(name, part, DType::kF32, std::move(shape));
  }
  void Fp8(const std::string& name, ModelPart part, int64_t out, int64_t in) {
    Add(name + ".weight", part, DType::kF8E4M3, {out, in});
    Add(name + ".scale", part, DType::kF8E8M0, {Blocks(out), Blocks(in)});
  }
  void Fp4(const std::string& name, ModelPart part, int64_t out, int64_t in) {
    Add(name + ".weight", part, DType::kI8, {out, in / 2});
    Add(name + ".scale", part, DType::kF8E8M0, {out, Blocks(in)});
  }

  void Top() {
    const ModelPart part = ModelPart::kEmbedding;
    Bf16("embed.weight", part, {c_.vocab_size, c_.hidden_size});
    Bf16("norm.weight", part, {c_.hidden_size});
    Bf16("head.weight", part, {c_.vocab_size, c_.hidden_size});
  }

  void Layer(int layer) {
    const std::string name = fmt::format("layers.{}.", layer);
    Block(name, c_.num_experts);
    const auto contains = [&](const std::vector<int>& layers) {
      return std::find(layers.begin(), layers.end(), layer) != layers.end();
    };
    if (contains(c_.kv_source_layers)) Compressor(name, layer);
    if (contains(c_.index_source_layers)) Indexer(name);
    if (contains(c_.ngram_layers)) NgramMemory(name, layer);
  }

  // What backbone layers and draft blocks have in common.
  void Block(const std::string& name, int num_experts) {
    Bf16(name + "attn_norm.weight", ModelPart::kAttention, {c_.hidden_size});
    Bf16(name + "ffn_norm.weight", ModelPart::kAttention, {c_.hidden_size});
    const int64_t mixes = int64_t{c_.num_streams} * (2 + c_.num_streams);
    for (const char* sub : {"hc_attn", "hc_ffn"}) {
      F32(name + sub + "_fn", ModelPart::kHyperConnection,
          {mixes, int64_t{c_.num_streams} * c_.hidden_size});
      F32(name + sub + "_base", ModelPart::kHyperConnection, {mixes});
      F32(name + sub + "_scale", ModelPart::kHyperConnection, {3});
    }
    Attention(name + "attn.");
    Ffn(name + "ffn.", num_experts);
  }

  void Attention(const std::string& name) {
    const ModelPart part = ModelPart::kAttention;
    const int64_t width = int64_t{c_.num_heads} * c_.head_dim;
    Fp8(name + "wq_a", part, c_.q_lora_rank, c_.hidden_size);
    Bf16(name + "q_norm.weight", part, {c_.q_lora_rank});
    Fp8(name + "wq_b", part, width, c_.q_lora_rank);
    Fp8(name + "wkv", part, c_.head_dim, c_.hidden_size);
    Bf16(name + "kv_norm.weight", part, {c_.head_dim});
    F32(name + "attn_sink", part, {c_.num_heads});
    Fp8(name + "wo_a", part, int64_t{c_.o_groups} * c_.o_lora_rank, width / c_.o_groups);
    Fp8(name + "wo_b", part, c_.hidden_size, int64_t{c_.o_groups} * c_.o_lora_rank);
  }

  void Ffn(const std::string& name, int num_experts) {
    Bf16(name + "gate.weight", ModelPart::kGate, {num_experts, c_.hidden_size});
    F32(name + "gate.bias", ModelPart::kGate, {num_experts});
    F32(name + "gate.bias_vl", ModelPart::kGate, {num_experts});
    const int64_t inner = c_.moe_intermediate_size;
    const std::string shared = name + "shared_experts.";
    Fp8(shared + "w1", ModelPart::kSharedExperts, inner, c_.hidden_size);
    Fp8(shared + "w3", ModelPart::kSharedExperts, inner, c_.hidden_size);
    Fp8(shared + "w2", ModelPart::kSharedExperts, c_.hidden_size, inner);
    for (int e = 0; e < num_experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", name, e);
      Fp4(expert + "w1", ModelPart::kRoutedExperts, inner, c_.hidden_size);
      Fp4(expert + "w3", ModelPart::kRoutedExperts, inner, c_.hidden_size);
      Fp4(expert + "w2", ModelPart::kRoutedExperts, c_.hidden_size, inner);
    }
  }

  void Compressor(const std::string& name, int layer) {
    const ModelPart part = ModelPart::kCompressor;
    const std::string compressor = name + "attn.compressor.";
    Bf16(compressor + "wkv.weight", part, {c_.head_dim, c_.hidden_size});
    Bf16(compressor + "norm.weight", part, {c_.head_dim});
    if (c_.compress_ratios[static_cast<size_t>(layer)] > 1) {
      Bf16(compressor + "wgate.weight", part, {c_.head_dim, c_.hidden_size});
    }
    Bf16(name + "attn.indexer.wk.weight", part, {c_.index_head_dim, c_.head_dim});
    Bf16(name + "attn.indexer.k_norm.weight", part, {c_.index_head_dim});
  }

  void Indexer(const std::string& name) {
    const ModelPart part = ModelPart::kCompressor;
    Fp8(name + "attn.indexer.wq_b", part, int64_t{c_.index_num_heads} * c_.index_head_dim,
        c_.q_lora_rank);
    Bf16(name + "attn.indexer.weights_proj.weight", part, {c_.index_num_heads, c_.hidden_size});
  }

  void NgramMemory(const std::string& name, int layer) {
    const auto at = std::find(c_.ngram_layers.begin(), c_.ngram_layers.end(), layer);
    const int64_t rows = c_.ngram_table_rows[static_cast<size_t>(at - c_.ngram_layers.begin())];
    Add(name + "engram.embed.weight", ModelPart::kNgramTables, DType::kF8E4M3,
        {rows, c_.ngram_head_dim});
    Add(name + "engram.embed.scale", ModelPart::kNgramTables, DType::kF8E8M0,
        {rows, Blocks(c_.ngram_head_dim)});
    const ModelPart part = ModelPart::kNgramProjection;
    Fp8(name + "engram.wkv", part, int64_t{c_.num_streams + 1} * c_.hidden_size,
        int64_t{c_.ngram_row_count()} * c_.ngram_head_dim);
    Bf16(name + "engram.q_weight", part, {c_.num_streams, c_.hidden_size});
    Bf16(name + "engram.k_weight", part, {c_.num_streams, c_.hidden_size});
  }

  void DraftBlock(int block) {
    forced_part_ = ModelPart::kDraft;
    const ModelPart part = ModelPart::kDraft;
    const std::string name = fmt::format("mtp.{}.", block);
    Block(name, c_.draft_num_experts);
    if (block == 0) {
      const int64_t targets = static_cast<int64_t>(c_.draft_target_layers.size());
      Fp8(name + "main_proj", part, c_.hidden_size, targets * c_.hidden_size);
      Bf16(name + "main_norm.weight", part, {c_.hidden_size});
    }
    if (block == c_.num_draft_blocks - 1) {
      Bf16(name + "norm.weight", part, {c_.hidden_size});
      Bf16(name + "markov_head.embed.weight", part, {c_.vocab_size, c_.draft_markov_rank});
      Bf16(name + "markov_head.head.weight", part, {c_.vocab_size, c_.draft_markov_rank});
      Bf16(name + "confidence_head.proj.weight", part, {1, c_.hidden_size + c_.draft_markov_rank});
    }
    forced_part_.reset();
  }

  void Vision() {
    const VisionConfig& v = c_.vision;
    const ModelPart part = ModelPart::kVision;
    const int64_t h = v.hidden_size;
    const int64_t patch = int64_t{3} * v.patch_size * v.patch_size;
    Bf16("vision.patch_embed.proj.weight", part, {h, patch});
    Bf16("vision.patch_embed.proj.bias", part, {h});
    for (int b = 0; b < v.num_layers; ++b) {
      const std::string name = fmt::format("vision.blocks.{}.", b);
      Bf16(name + "norm1.weight", part, {h});
      Bf16(name + "norm2.weight", part, {h});
      Bf16(name + "attn.wqkv.weight", part, {3 * h, h});
      Bf16(name + "attn.wqkv.bias", part, {3 * h});
      Bf16(name + "attn.wo.weight", part, {h, h});
      Bf16(name + "attn.wo.bias", part, {h});
      Bf16(name + "mlp.w1.weight", part, {int64_t{2} * v.intermediate_size, h});
      Bf16(name + "mlp.w2.weight", part, {h, v.intermediate_size});
    }
    Bf16("vision.norm.weight", part, {h});
    const int64_t cell = h * v.downsample_ratio * v.downsample_ratio;
    Bf16("aligner.w1.weight", part, {c_.hidden_size, cell});
    Bf16("aligner.w1.bias", part, {c_.hidden_size});
    Bf16("aligner.w2.weight", part, {c_.hidden_size, c_.hidden_size});
    Bf16("aligner.w2.bias", part, {c_.hidden_size});
    for (const char* mark : {"image_start", "image_end", "image_newline"}) {
      Bf16(mark, part, {c_.hidden_size});
    }
  }

  const ModelConfig& c_;
  std::optional<ModelPart> forced_part_;  // everything of a draft block counts as draft
  std::vector<ManifestEntry> entries_;
};

}  // namespace

std::string_view PartName(ModelPart part) {
  switch (part) {
    case ModelPart::kEmbedding:
      return "embedding and head";
    case ModelPart::kAttention:
      return "attention";
    case ModelPart::kCompressor:
      return "compressor and indexer";
    case ModelPart::kHyperConnection:
      return "hyper-connections";
    case ModelPart::kGate:
      return "gate";
    case ModelPart::kSharedExperts:
      return "shared experts";
    case ModelPart::kRoutedExperts:
      return "routed experts";
    case ModelPart::kNgramTables:
      return "n-gram tables";
    case ModelPart::kNgramProjection:
      return "n-gram projection";
    case ModelPart::kDraft:
      return "draft head";
    case ModelPart::kVision:
      return "vision";
  }
  return "?";
}

std::vector<ManifestEntry> ManifestOf(const ModelConfig& config) { return Builder(config).Build(); }

std::vector<TensorSpec> SpecsOf(const ModelConfig& config) {
  std::vector<TensorSpec> specs;
  for (ManifestEntry& entry : ManifestOf(config)) specs.push_back(std::move(entry.spec));
  return specs;
}

}  // namespace deepinfer
