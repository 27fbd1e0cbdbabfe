// Which compressed entries a row attends to (model.md sections 7.3 and 7.4).
#include <cmath>

#include "kernels/ops.h"
#include "model/layers/attention.h"
#include "model/layers/linear.h"

namespace deepinfer {
namespace {

// How a layer takes part in the hierarchical selection: layers before the candidate source do not,
// the source builds the candidates from its scores, later ones score only inside them.
CandidateUse CandidateUseOf(const ModelConfig& c, int layer) {
  if (c.candidate_source_layer < 0 || layer < c.candidate_source_layer) return CandidateUse::kNone;
  return layer == c.candidate_source_layer ? CandidateUse::kMake : CandidateUse::kUse;
}

// Q = fp4(rope(wq_b q_latent)) as packed rows [rows, index heads].
std::byte* IndexQueries(Step& step, int layer, const float* q_latent) {
  const ModelConfig& c = step.config();
  const IndexerWeights& w = *step.parts.weights->layers[static_cast<size_t>(layer)].indexer;
  const int64_t count = step.rows * c.index_num_heads;
  const int64_t row_bytes = step.layout().key_row_bytes();
  auto* packed = step.scratch().Alloc<std::byte>(count * row_bytes);

  const ScratchArena::Scope scope(step.scratch());
  auto* q = step.scratch().Alloc<float>(count * c.index_head_dim);
  Linear(step, Quantize(step, q_latent, step.rows, w.wq_b), w.wq_b, q);
  Rotate(step, step.RopeOf(layer),
         {.x = q, .rows = step.rows, .heads = c.index_num_heads, .dim = c.index_head_dim});
  auto* out = step.scratch().Alloc<std::byte*>(count);
  for (int64_t i = 0; i < count; ++i) out[i] = packed + i * row_bytes;
  StoreRows(step.context,
            {.x = q,
             .x_stride = c.index_head_dim,
             .dim = c.index_head_dim,
             .format = step.layout().keys_format(),
             .out = out},
            count);
  return packed;
}

// w = r(r(weights_proj x) * head_dim^-1/2 * heads^-1/2) [rows, index heads]
float* HeadWeights(Step& step, int layer) {
  const ModelConfig& c = step.config();
  const WeightView& proj =
      step.parts.weights->layers[static_cast<size_t>(layer)].indexer->weights_proj;
  const int64_t count = step.rows * c.index_num_heads;
  auto* weights = step.scratch().Alloc<float>(count);
  const ScratchArena::Scope scope(step.scratch());
  Linear(step, Unquantized(step, step.x, step.rows, proj), proj, weights);
  const double factor = 1.0 / std::sqrt(static_cast<double>(c.index_head_dim)) /
                        std::sqrt(static_cast<double>(c.index_num_heads));
  Scale(step.context, {.x = weights, .factor = static_cast<float>(factor), .round = step.round()},
        count);
  return weights;
}

// The section whose index keys a layer scores: its own source's.
int KeySection(const Step& step, int layer, int ratio) {
  const ModelConfig& c = step.config();
  const bool group_open = step.sequences.front().end_pos() % ratio != 0;
  const bool decode_step = step.rows == 1 && step.pos[0] > 0;
  const bool quirk = step.parts.released_index_keys && decode_step && group_open;
  return step.layout().SectionOf(quirk ? c.kv_source_layers.back() : c.KvSourceOf(layer));
}

}  // namespace

void SelectEntries(Step& step, int layer, const float* q_latent) {
  const ModelConfig& c = step.config();
  const ScratchArena::Scope scope(step.scratch());
  const std::byte* queries = IndexQueries(step, layer, q_latent);
  const float* weights = HeadWeights(step, layer);

  // Entry j is visible to the query at t iff (j+1) * ratio <= t+1.
  const int ratio = c.compress_ratios[static_cast<size_t>(layer)];
  const int source = KeySection(step, layer, ratio);
  auto* keys = step.scratch().Alloc<BlockRowsView>(step.rows);
  auto* num_visible = step.scratch().Alloc<int64_t>(step.rows);
  for (const SequenceStep& seq : step.sequences) {
    const BlockRowsView view = seq.state->IndexKeys(source);
    for (int64_t i = 0; i < seq.num_rows; ++i) {
      keys[seq.row_begin + i] = view;
      num_visible[seq.row_begin + i] = (seq.begin_pos + i + 1) / ratio;
    }
  }
  const CandidateUse use = CandidateUseOf(c, layer);
  float* margins = nullptr;
  float* block_margins = nullptr;
  if (step.observer != nullptr) {
    margins = step.scratch().Alloc<float>(step.rows);
    block_margins = step.scratch().Alloc<float>(step.rows);
  }
  IndexSelect(step.context,
              {.queries = queries,
               .weights = weights,
               .heads = c.index_num_heads,
               .dim = c.index_head_dim,
               .format = step.layout().keys_format(),
               .keys = keys,
               .num_visible = num_visible,
               .top_k = c.index_top_k,
               .selected = step.selection.selected,
               .num_selected = step.selection.num_selected,
               .candidates = use,
               .block_size = c.candidate_block_size,
               .top_blocks = c.candidate_top_blocks,
               .candidate_blocks = step.selection.blocks,
               .num_candidate_blocks = step.selection.num_blocks,
               .margins = margins,
               .candidate_margins = block_margins},
              step.rows);
  if (step.observer == nullptr) return;
  step.Note("margin.sel", layer, 1, margins);
  if (use == CandidateUse::kMake) {
    step.Note("margin.candidate_mask", layer, 1, block_margins);
    step.Note("candidate_blocks", layer, c.candidate_top_blocks, step.selection.blocks);
    step.Note("num_candidate_blocks", layer, 1, step.selection.num_blocks);
  }
}

}  // namespace deepinfer
