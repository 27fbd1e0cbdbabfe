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
    count += seq.end_pos() / section.ratio - seq.begin_pos / section.ratio;
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
    for (int64_t entry = seq.begin_pos / section.ratio; entry < seq.end_pos() / section.ratio;
         ++entry, ++i) {
      entries.pos[i] = entry * section.ratio;
      entries.kv_rows[i] = rows.Row(entry);
      entries.index_keys[i] = keys.Row(entry);
    }
  }
  return entries;
}

// u and gate of every row into the step's group rows; then the pooled latents [entries, head_dim].
void PoolLatents(Step& step, const CompressorWeights& w, int section_idx, const Entries& entries,
                 float* latent) {
  const int64_t dim = step.config().head_dim;
  const int ratio = step.layout().sections()[static_cast<size_t>(section_idx)].ratio;
  float* fresh = step.groups[section_idx];
  const Operand x = Unquantized(step, step.x, step.rows, w.wkv);
  LinearF32(step, x, w.wkv, {.y = fresh, .stride = 2 * dim});
  LinearF32(step, x, w.wgate, {.y = fresh + dim, .stride = 2 * dim});

  auto* members = step.scratch().Alloc<const float*>(std::max<int64_t>(1, entries.count * ratio));
  int64_t i = 0;
  for (const SequenceStep& seq : step.sequences) {
    const int64_t end = seq.end_pos() / ratio * ratio;
    for (int64_t pos = seq.begin_pos / ratio * ratio; pos < end; ++pos) {
      members[i++] = pos < seq.begin_pos ? seq.state->GroupRow(section_idx, pos)
                                         : fresh + (seq.row_begin + pos - seq.begin_pos) * 2 * dim;
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
  const Entries entries = CompletedEntries(step, section, section_idx);

  auto* latent = step.scratch().Alloc<float>(std::max<int64_t>(1, entries.count) * c.head_dim);
  if (section.ratio == 1) {
    Linear(step, Unquantized(step, step.x, step.rows, w.wkv), w.wkv, latent);
  } else {
    PoolLatents(step, w, section_idx, entries, latent);
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
