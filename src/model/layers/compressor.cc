// Compressed KV and index keys (model.md section 7.1).
#include <algorithm>

#include "kernels/ops.h"
#include "model/layers/attention.h"
#include "model/layers/linear.h"

namespace deepinfer {
namespace {

// The entries that the rows of a step complete, sequence by sequence.
struct Entries {
  int64_t count;
  int64_t* pos;            // [count] position of the group's first token: where the entry sits
  std::byte** kv_rows;     // [count] destinations
  std::byte** index_keys;  // [count]
};

Entries CompletedEntries(Step& step, const KvSection& section, int section_idx) {
  int64_t count = 0;
  for (const SequenceStep& seq : step.sequences) {
    count += seq.new_end() / section.ratio - seq.new_pos / section.ratio;
  }
  ScratchArena& scratch = step.scratch();
  const Entries entries{.count = count,
                        .pos = scratch.Alloc<int64_t>(count),
                        .kv_rows = scratch.Alloc<std::byte*>(count),
                        .index_keys = scratch.Alloc<std::byte*>(count)};
  int64_t i = 0;
  for (const SequenceStep& seq : step.sequences) {
    const BlockRowsView rows = seq.state->KvRows(section_idx);
    const BlockRowsView keys = seq.state->IndexKeys(section_idx);
    for (int64_t entry = seq.new_pos / section.ratio; entry < seq.new_end() / section.ratio;
         ++entry, ++i) {
      entries.pos[i] = entry * section.ratio;
      entries.kv_rows[i] = rows.Row(entry);
      entries.index_keys[i] = keys.Row(entry);
    }
  }
  return entries;
}

// The rows of the step that write entries: all but those that run behind a prefix hit.
struct NewRows {
  int64_t count;
  const int32_t* index;  // [count] rows of the step; null: all of them
};

NewRows RowsThatWrite(Step& step) {
  int64_t count = 0;
  for (const SequenceStep& seq : step.sequences) count += seq.num_new();
  if (count == step.rows) return {.count = count, .index = nullptr};
  auto* index = step.scratch().Alloc<int32_t>(std::max<int64_t>(1, count));
  for (const SequenceStep& seq : step.sequences) {
    for (int64_t i = 0; i < seq.num_new(); ++i) {
      index[seq.new_row + i] =
          static_cast<int32_t>(seq.row_begin + seq.new_pos - seq.first_pos + i);
    }
  }
  return {.count = count, .index = index};
}

// u and gate of these rows into the step's group rows; then the pooled latents [entries, head_dim].
void PoolLatents(Step& step, const NewRows& rows, int section_idx, const Entries& entries,
                 float* latent) {
  const KvSection& section = step.layout().sections()[static_cast<size_t>(section_idx)];
  const LayerWeights& layer = step.parts.weights->layers[static_cast<size_t>(section.layer)];
  const CompressorWeights& w = *layer.compressor;
  const int64_t dim = step.config().head_dim;
  const int ratio = section.ratio;
  float* fresh = step.groups[section_idx];
  const Operand x = Unquantized(step, step.x, step.rows, w.wkv);
  LinearOutput out{.y = fresh, .stride = 2 * dim, .x_index = rows.index, .rows = rows.count};
  LinearF32(step, x, w.wkv, out);
  out.y = fresh + dim;
  LinearF32(step, x, w.wgate, out);

  auto* members = step.scratch().Alloc<const float*>(std::max<int64_t>(1, entries.count * ratio));
  int64_t i = 0;
  for (const SequenceStep& seq : step.sequences) {
    const int64_t end = seq.new_end() / ratio * ratio;
    for (int64_t pos = seq.new_pos / ratio * ratio; pos < end; ++pos) {
      members[i++] = pos < seq.new_pos ? seq.state->GroupRow(section_idx, pos)
                                       : fresh + (seq.new_row + pos - seq.new_pos) * 2 * dim;
    }
  }
  PoolGroups(step.context,
             {.ug = members, .ratio = ratio, .dim = dim, .round = step.round(), .y = latent},
             entries.count);
}

void Store(Step& step, const float* x, int64_t dim, RowFormat format, std::byte* const* out,
           int64_t count) {
  StoreRows(step.context, {.x = x, .x_stride = dim, .dim = dim, .format = format, .out = out},
            count);
}

}  // namespace

void Compress(Step& step, int layer) {
  const ModelConfig& c = step.config();
  const CompressorWeights& w = *step.parts.weights->layers[static_cast<size_t>(layer)].compressor;
  const int section_idx = step.layout().SectionOf(layer);
  const KvSection& section = step.layout().sections()[static_cast<size_t>(section_idx)];
  const ScratchArena::Scope scope(step.scratch());
  const NewRows rows = RowsThatWrite(step);
  if (rows.count == 0) return;
  const Entries entries = CompletedEntries(step, section, section_idx);

  auto* latent = step.scratch().Alloc<float>(std::max<int64_t>(1, entries.count) * c.head_dim);
  if (section.ratio == 1) {
    Linear(step, Unquantized(step, step.x, step.rows, w.wkv), w.wkv,
           {.y = latent, .stride = c.head_dim, .x_index = rows.index, .rows = rows.count});
  } else {
    PoolLatents(step, rows, section_idx, entries, latent);
  }
  if (entries.count == 0) return;
  Norm(step, latent, w.norm, entries.count, c.head_dim, latent);

  const CosSin rope = step.RopeAt(entries.pos, entries.count);
  auto* key = step.scratch().Alloc<float>(entries.count * c.index_head_dim);
  Linear(step, Unquantized(step, latent, entries.count, w.index_wk), w.index_wk, key);
  Norm(step, key, w.index_k_norm, entries.count, c.index_head_dim, key);
  Rotate(step, rope, {.x = key, .rows = entries.count, .heads = 1, .dim = c.index_head_dim});
  Store(step, key, c.index_head_dim, step.layout().keys_format(), entries.index_keys,
        entries.count);

  Rotate(step, rope, {.x = latent, .rows = entries.count, .heads = 1, .dim = c.head_dim});
  Store(step, latent, c.head_dim, step.layout().rows_format(), entries.kv_rows, entries.count);
}

}  // namespace deepinfer
