#include "model/step_size.h"

#include <algorithm>

#include "kernels/column_order.h"
#include "kernels/gated_ffn.h"
#include "kernels/kernels.h"
#include "kv/sequence_state.h"
#include "model/layers/attention.h"
#include "model/step.h"

namespace deepinfer {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kPointer = sizeof(void*);

// Sizes of the arrays of a step; "Row" functions are bytes per row.
class StepSize {
 public:
  StepSize(const ModelConfig& config, const KvLayout& layout, const StepShape& shape)
      : c_(config),
        layout_(layout),
        shape_(shape),
        packed_(!layout.shape().fp32_rows),
        hidden_(config.hidden_size),
        ngram_width_(config.ngram_layers.empty()
                         ? 0
                         : int64_t{config.ngram_row_count()} * config.ngram_head_dim) {}

  int64_t Total() const {
    const int64_t phases = std::max({NgramFetch(), Ngram(), Caches(), Attention(), Experts()});
    return Held() + phases;
  }

 private:
  int64_t rows() const { return shape_.rows; }
  // A vector of activations as a product reads it; fp32 numerics read it in place.
  int64_t Packed(int64_t k, WeightFormat reader) const {
    return packed_ ? PackedStride(OrderOf(reader), k) * int64_t{sizeof(uint16_t)} : 0;
  }

  // What lives as long as the step (BeginStep, FetchNgramRows).
  int64_t Held() const {
    const int64_t ids = 4 + kPointer + 8 + 1 + 4;  // token, embedding, position, kind, class
    const int64_t rope = 4 * (c_.rope_dim / 2) * kFloat;
    const int64_t streams = (c_.num_streams * hidden_ + c_.num_streams + 2 * hidden_) * kFloat;
    const int64_t window = layout_.num_rings() * layout_.window_row_bytes();
    int64_t groups = 0;
    for (const KvSection& section : layout_.sections()) {
      if (section.ratio > 1) groups += int64_t{2} * c_.head_dim * kFloat;
    }
    const int64_t selection = (c_.index_top_k + 2 + std::max(1, c_.candidate_top_blocks)) * 4;
    const int64_t ngram = static_cast<int64_t>(c_.ngram_layers.size()) * ngram_width_ * 33 / 32;
    const int64_t sequence =
        static_cast<int64_t>(sizeof(SequenceStep)) +
        (layout_.num_rings() + 1) * static_cast<int64_t>(sizeof(StepWrites::Rows));
    return rows() * (ids + rope + streams + window + groups + selection + ngram) +
           shape_.sequences * sequence;
  }

  int64_t NgramFetch() const {
    return rows() * static_cast<int64_t>(c_.ngram_layers.size()) * c_.ngram_row_count() * 8;
  }

  int64_t Ngram() const {
    if (ngram_width_ == 0) return 0;
    return rows() * ((ngram_width_ + (c_.num_streams + 1) * hidden_) * kFloat +
                     Packed(ngram_width_, WeightFormat::kFp8));
  }

  // WriteCaches: the packed input, then the window rows or the entries of the busiest source.
  int64_t Caches() const {
    int64_t most = c_.head_dim * kFloat + kPointer;
    for (const KvSection& section : layout_.sections()) {
      const int64_t entry = 8 + 2 * kPointer + c_.head_dim * kFloat +
                            (section.ratio > 1 ? section.ratio * kPointer : 0) +
                            c_.rope_dim * kFloat + c_.index_head_dim * kFloat +
                            Packed(c_.head_dim, WeightFormat::kBf16);
      most = std::max(most, Packed(hidden_, WeightFormat::kBf16) + entry / section.ratio);
    }
    return rows() * (Packed(hidden_, WeightFormat::kFp8) + most);
  }

  // The mixes of a sub-block, held until its end.
  int64_t MixesRow() const {
    const int64_t s = c_.num_streams;
    return (2 * s + s * s + s * (2 + s)) * kFloat;
  }

  int64_t Attention() const {
    const int64_t latent = c_.q_lora_rank * kFloat + Packed(hidden_, WeightFormat::kFp8);
    return rows() * (MixesRow() + latent) + std::max(Selection(), Tile());
  }

  int64_t Selection() const {
    if (c_.index_source_layers.empty()) return 0;
    const int64_t heads = c_.index_num_heads;
    const int64_t queries = heads * layout_.key_row_bytes();
    const int64_t making_queries = heads * (c_.index_head_dim * kFloat + kPointer) +
                                   Packed(c_.q_lora_rank, WeightFormat::kFp8);
    const int64_t making_weights = heads * kFloat + Packed(hidden_, WeightFormat::kBf16);
    const int64_t visible = heads * kFloat + static_cast<int64_t>(sizeof(BlockRowsView)) + 8;
    const int64_t slots = rows() < shape_.threads ? 1 : shape_.threads;
    const int64_t scores = slots * shape_.max_len * 3 * kFloat;
    return rows() * queries +
           std::max({rows() * making_queries, rows() * making_weights, rows() * visible + scores});
  }

  int64_t Tile() const {
    const int64_t heads = int64_t{c_.num_heads} * c_.head_dim;
    const int64_t groups = int64_t{c_.o_groups} * c_.o_lora_rank;
    const int64_t row = Packed(c_.q_lora_rank, WeightFormat::kFp8) + 2 * heads * kFloat +
                        groups * kFloat + 4 + Packed(heads, WeightFormat::kFp8) +
                        Packed(groups, WeightFormat::kFp8);
    return rows() * static_cast<int64_t>(sizeof(AttentionRow)) +
           std::min(rows(), kAttentionTileRows) * row;
  }

  int64_t Experts() const {
    const int64_t k = c_.num_experts_per_token;
    const int64_t inner = c_.moe_intermediate_size;
    const int64_t routing = k * 16 + c_.num_experts * kFloat + Packed(hidden_, WeightFormat::kBf16);
    const int64_t inputs =
        Packed(hidden_, WeightFormat::kFp4) + Packed(hidden_, WeightFormat::kFp8);
    // The shared expert takes all rows at once; routed ones are grouped.
    const int64_t together = std::max(rows(), std::min(rows() * k, kFfnGroupRows));
    const int64_t row =
        (3 * inner + hidden_) * kFloat +
        std::max(Packed(inner, WeightFormat::kFp4), Packed(inner, WeightFormat::kFp8));
    const int64_t plan = c_.num_experts * (12 + static_cast<int64_t>(sizeof(FfnExpert)));
    return rows() * (2 * MixesRow() + routing + inputs) + together * row + plan;
  }

  const ModelConfig& c_;
  const KvLayout& layout_;
  const StepShape& shape_;
  bool packed_;
  int64_t hidden_;
  int64_t ngram_width_;
};

// Result rows of one head's tile and operands of a product: measured, 2 MB at the released
// dimensions.
constexpr int64_t kWorkspaceFloor = 1 << 20;

}  // namespace

int64_t StepScratchBytes(const ModelConfig& config, const KvLayout& layout,
                         const StepShape& shape) {
  return StepSize(config, layout, shape).Total();
}

int64_t KernelWorkspaceBytes(const ModelConfig& config, int threads) {
  const int64_t attention = 3 * int64_t{config.num_heads} * config.head_dim * kFloat;
  return threads * (kWorkspaceFloor + attention);
}

}  // namespace deepinfer
