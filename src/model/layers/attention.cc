#include "model/layers/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/ops.h"
#include "model/layers/linear.h"

namespace deepinfer {
namespace {

// kv = act_quant(rope(RMSNorm(wkv x))), stored in the cache format (model.md section 6).
void StoreWindowRows(Step& step, int layer, const Operand& x) {
  const ModelConfig& c = step.config();
  const AttentionWeights& w = step.parts.weights->layers[static_cast<size_t>(layer)].attention;
  const ScratchArena::Scope scope(step.scratch());
  auto* kv = step.scratch().Alloc<float>(step.rows * c.head_dim);
  Linear(step, x, w.wkv, kv);
  Norm(step, kv, w.kv_norm, step.rows, c.head_dim, kv);
  Rotate(step, step.RopeOf(layer), {.x = kv, .rows = step.rows, .heads = 1, .dim = c.head_dim});
  auto* out = step.scratch().Alloc<std::byte*>(step.rows);
  for (int64_t row = 0; row < step.rows; ++row) out[row] = step.WindowRow(layer, row);
  StoreRows(step.context,
            {.x = kv,
             .x_stride = c.head_dim,
             .dim = c.head_dim,
             .format = step.layout().window_format(),
             .out = out},
            step.rows);
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const SequenceStep& seq = step.sequences[s];
    step.WrittenTo(layer, s) = {.data = step.WindowRow(layer, seq.row_begin),
                                .first_pos = seq.begin_pos,
                                .count = seq.num_rows};
  }
}

// Where the keys of every row are: its window and its selected compressed rows.
AttentionRow* KeyLists(Step& step, int layer) {
  const ModelConfig& c = step.config();
  const bool compressed = c.compress_ratios[static_cast<size_t>(layer)] > 0;
  auto* keys = step.scratch().Alloc<AttentionRow>(step.rows);
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const SequenceStep& seq = step.sequences[s];
    const StepWrites::Rows& fresh = step.WrittenTo(layer, s);
    const WindowView window{.ring = seq.state->Ring(layer),
                            .fresh = fresh.data,
                            .fresh_begin = fresh.first_pos,
                            .floor = seq.state->RingFloor(layer),
                            .ring_rows = step.layout().ring_rows(),
                            .row_bytes = static_cast<int32_t>(step.layout().window_row_bytes())};
    const BlockRowsView rows = compressed
                                   ? seq.state->KvRows(step.layout().SectionOf(c.KvSourceOf(layer)))
                                   : BlockRowsView{};
    for (int64_t i = 0; i < seq.num_rows; ++i) {
      const int64_t row = seq.row_begin + i;
      keys[row] = {.window = window,
                   .pos = seq.begin_pos + i,
                   .rows = rows,
                   .selected = step.selection.selected + row * c.index_top_k,
                   .num_selected = compressed ? step.selection.num_selected[row] : 0};
    }
  }
  return keys;
}

// Rows [begin, begin + count): queries, attention, and the grouped low-rank output projection.
void AttendTile(Step& step, int layer, const float* q_latent, const AttentionRow* keys,
                int64_t begin, int64_t count) {
  const ModelConfig& c = step.config();
  const AttentionWeights& w = step.parts.weights->layers[static_cast<size_t>(layer)].attention;
  const ScratchArena::Scope scope(step.scratch());
  const int64_t half = c.rope_dim / 2;
  const CosSin all = step.RopeOf(layer);
  const CosSin rope{.cos = all.cos + begin * half, .sin = all.sin + begin * half};

  auto* q = step.scratch().Alloc<float>(count * c.num_heads * c.head_dim);
  Linear(step, Quantize(step, q_latent + begin * c.q_lora_rank, count, w.wq_b), w.wq_b, q);
  Rotate(step, rope, {.x = q, .rows = count, .heads = c.num_heads, .dim = c.head_dim});

  auto* o = step.scratch().Alloc<float>(count * c.num_heads * c.head_dim);
  Attend(step.context,
         {.q = q,
          .rows = keys + begin,
          .sink = w.sink,
          .heads = c.num_heads,
          .dim = c.head_dim,
          .window_size = c.window_size,
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim))),
          .window_format = step.layout().window_format(),
          .rows_format = step.layout().rows_format(),
          .round = step.round(),
          .o = o},
         count);
  Rotate(step, rope,
         {.x = o, .rows = count, .heads = c.num_heads, .dim = c.head_dim, .inverse = true});

  // o is [count * groups] rows of heads/groups * head_dim; group g of every row meets its own slice
  // of wo_a.
  const int64_t groups = c.o_groups;
  auto* z = step.scratch().Alloc<float>(count * groups * c.o_lora_rank);
  auto* index = step.scratch().Alloc<int32_t>(count);
  const Operand of_groups = Unquantized(step, o, count * groups, w.wo_a);
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < count; ++i) index[i] = static_cast<int32_t>(i * groups + g);
    Linear(step, of_groups, RowsOf(w.wo_a, g * c.o_lora_rank, c.o_lora_rank),
           {.y = z + g * c.o_lora_rank,
            .stride = groups * c.o_lora_rank,
            .x_index = index,
            .rows = count});
  }
  Linear(step, Quantize(step, z, count, w.wo_b), w.wo_b, step.y + begin * c.hidden_size);
}

}  // namespace

void Rotate(Step& step, const CosSin& rope, const RotateArgs& args) {
  Rope(step.context,
       {.x = args.x,
        .heads = args.heads,
        .dim = args.dim,
        .rope_dim = step.config().rope_dim,
        .cos = rope.cos,
        .sin = rope.sin,
        .inverse = args.inverse,
        .round = step.round()},
       args.rows);
}

void WriteCaches(Step& step, int layer) {
  const LayerWeights& w = step.parts.weights->layers[static_cast<size_t>(layer)];
  const ScratchArena::Scope scope(step.scratch());
  StoreWindowRows(step, layer, Quantize(step, step.x, step.rows, w.attention.wkv));
  if (w.compressor) Compress(step, layer);
}

void Attention(Step& step, int layer) {
  const ModelConfig& c = step.config();
  const LayerWeights& layer_weights = step.parts.weights->layers[static_cast<size_t>(layer)];
  const AttentionWeights& w = layer_weights.attention;
  const ScratchArena::Scope scope(step.scratch());

  auto* q_latent = step.scratch().Alloc<float>(step.rows * c.q_lora_rank);
  Linear(step, Quantize(step, step.x, step.rows, w.wq_a), w.wq_a, q_latent);
  Norm(step, q_latent, w.q_norm, step.rows, c.q_lora_rank, q_latent);
  if (layer_weights.indexer) SelectEntries(step, layer, q_latent);
  const bool compressed = c.compress_ratios[static_cast<size_t>(layer)] > 0;
  if (compressed) {
    step.Note("sel", layer, c.index_top_k, step.selection.selected);
    step.Note("num_sel", layer, 1, step.selection.num_selected);
  }

  const AttentionRow* keys = KeyLists(step, layer);
  for (int64_t begin = 0; begin < step.rows; begin += kAttentionTileRows) {
    AttendTile(step, layer, q_latent, keys, begin, std::min(kAttentionTileRows, step.rows - begin));
  }
  step.Note("attn", layer, c.hidden_size, step.y);
}

}  // namespace deepinfer
