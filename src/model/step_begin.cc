#include "model/step_begin.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/ops.h"

namespace deepinfer {
namespace {

// The slices of a batch as runs of rows.
std::span<SequenceStep> LayOutSequences(ScratchArena& scratch, const ForwardBatch& batch) {
  const auto count = static_cast<int64_t>(batch.slices.size());
  auto* sequences = scratch.Alloc<SequenceStep>(count);
  int64_t row = 0;
  int64_t new_row = 0;
  for (int64_t s = 0; s < count; ++s) {
    const SequenceSlice& slice = batch.slices[static_cast<size_t>(s)];
    CHECK(slice.state != nullptr);
    CHECK_GT(slice.num_rows, 0);
    sequences[s] = {.state = slice.state,
                    .prefill = slice.prefill,
                    .row_begin = row,
                    .num_rows = slice.num_rows,
                    .begin_pos = slice.state->len(),
                    .upcoming = slice.upcoming,
                    .first_row = row,
                    .first_pos = slice.state->len(),
                    .num_given = slice.num_rows,
                    .new_pos = slice.state->entries_len(),
                    .new_row = new_row};
    for (int64_t i = 0; i < slice.num_rows; ++i) {
      CHECK_EQ(batch.rows[static_cast<size_t>(row + i)].pos, sequences[s].begin_pos + i);
    }
    row += slice.num_rows;
    new_row += sequences[s].num_new();
  }
  CHECK_EQ(row, static_cast<int64_t>(batch.rows.size()));
  return {sequences, static_cast<size_t>(count)};
}

// Per-row inputs as the ops read them.
struct RowInputs {
  int32_t* tokens;
  const uint16_t** embeddings;
  int64_t* pos;
  uint8_t* is_image;
  int32_t* classes;  // null without n-gram memory
};

RowInputs LayOutRows(ScratchArena& scratch, const ForwardBatch& batch, const NgramLayout* ngrams) {
  const auto rows = static_cast<int64_t>(batch.rows.size());
  const RowInputs in{.tokens = scratch.Alloc<int32_t>(rows),
                     .embeddings = scratch.Alloc<const uint16_t*>(rows),
                     .pos = scratch.Alloc<int64_t>(rows),
                     .is_image = scratch.Alloc<uint8_t>(rows),
                     .classes = ngrams != nullptr ? scratch.Alloc<int32_t>(rows) : nullptr};
  for (int64_t i = 0; i < rows; ++i) {
    const BatchRow& row = batch.rows[static_cast<size_t>(i)];
    in.tokens[i] = row.token;
    in.embeddings[i] = row.embedding;
    in.pos[i] = row.pos;
    in.is_image[i] = row.kind == RowKind::kImage ? 1 : 0;
    if (ngrams != nullptr) in.classes[i] = ClassOfRow(*ngrams, row);
  }
  return in;
}

CosSin FillRope(ScratchArena& scratch, const RopeTable& table, const int64_t* pos, int64_t count) {
  const int64_t values = count * table.num_pairs();
  auto* cos = scratch.Alloc<float>(values);
  auto* sin = scratch.Alloc<float>(values);
  table.Fill({pos, static_cast<size_t>(count)}, cos, sin);
  return {.cos = cos, .sin = sin};
}

float** LayOutGroups(ScratchArena& scratch, const KvLayout& layout, int64_t rows) {
  const auto count = static_cast<int64_t>(layout.sections().size());
  auto** groups = scratch.Alloc<float*>(std::max<int64_t>(1, count));
  for (int64_t s = 0; s < count; ++s) {
    const bool pooled = layout.sections()[static_cast<size_t>(s)].ratio > 1;
    groups[s] = pooled ? scratch.Alloc<float>(rows * 2 * layout.shape().head_dim) : nullptr;
  }
  return groups;
}

StepWrites::Rows* LayOutWritten(ScratchArena& scratch, const KvLayout& layout, size_t sequences) {
  const int64_t count = layout.num_rings() * static_cast<int64_t>(sequences);
  auto* written = scratch.Alloc<StepWrites::Rows>(count);
  std::fill_n(written, count, StepWrites::Rows{});
  return written;
}

Selection LayOutSelection(ScratchArena& scratch, const ModelConfig& c, int64_t rows) {
  return {.selected = scratch.Alloc<int32_t>(rows * c.index_top_k),
          .num_selected = scratch.Alloc<int32_t>(rows),
          .blocks = scratch.Alloc<int32_t>(rows * std::max(1, c.candidate_top_blocks)),
          .num_blocks = scratch.Alloc<int32_t>(rows)};
}

}  // namespace

CosSin Step::RopeAt(const int64_t* positions, int64_t count) const {
  return FillRope(scratch(), compressed_rope_table, positions, count);
}

Result<Step> BeginStep(const StepRequest& request) {
  const ForwardBatch& batch = request.batch;
  const ModelConfig& c = *request.parts.config;
  const auto rows = static_cast<int64_t>(batch.rows.size());
  CHECK_GT(rows, 0);
  CHECK_LE(rows, kMaxBatchRows);
  ScratchArena& scratch = request.context.scratch();

  const std::span<SequenceStep> sequences = LayOutSequences(scratch, batch);
  for (const SequenceStep& seq : sequences) RETURN_IF_ERROR(seq.state->Reserve(seq.num_rows));
  const RowInputs in = LayOutRows(scratch, batch, request.parts.ngram_layout);
  const KvLayout& layout = sequences.front().state->layout();
  const int64_t hidden = c.hidden_size;
  return Step{
      .context = request.context,
      .parts = request.parts,
      .leases = request.leases,
      .observer = request.observer,
      .rows = rows,
      .capacity = rows,
      .sequences = sequences,
      .tokens = in.tokens,
      .embeddings = in.embeddings,
      .pos = in.pos,
      .is_image = in.is_image,
      .classes = in.classes,
      .compressed_rope_table = request.compressed_rope,
      .window_rope = FillRope(scratch, request.window_rope, in.pos, rows),
      .compressed_rope = FillRope(scratch, request.compressed_rope, in.pos, rows),
      .h = scratch.Alloc<float>(rows * c.num_streams * hidden),
      .pre = scratch.Alloc<float>(rows * c.num_streams),
      .x = scratch.Alloc<float>(rows * hidden),
      .y = scratch.Alloc<float>(rows * hidden),
      .main_hidden = request.main_hidden,
      .window_rows =
          scratch.Alloc<std::byte>(layout.num_rings() * rows * layout.window_row_bytes()),
      .written = LayOutWritten(scratch, layout, sequences.size()),
      .groups = LayOutGroups(scratch, layout, rows),
      .selection = LayOutSelection(scratch, c, rows),
      .ngram_codes = nullptr,
      .ngram_scales = nullptr,
  };
}

void CommitStep(Step& step) {
  const KvLayout& layout = step.layout();
  const int num_rings = layout.num_rings();
  const size_t num_sections = layout.sections().size();
  const size_t num_sequences = step.sequences.size();
  auto* rings = step.scratch().Alloc<StepWrites::Rows>(num_rings);
  auto* groups = step.scratch().Alloc<StepWrites::Rows>(
      std::max<int64_t>(1, static_cast<int64_t>(num_sections)));
  for (size_t s = 0; s < num_sequences; ++s) {
    const SequenceStep& seq = step.sequences[s];
    for (int ring = 0; ring < num_rings; ++ring) {
      rings[ring] = step.written[static_cast<size_t>(ring) * num_sequences + s];
    }
    for (size_t i = 0; i < num_sections; ++i) {
      const float* first = step.groups[i];
      if (first != nullptr) first += seq.new_row * 2 * layout.shape().head_dim;
      groups[i] = {.data = reinterpret_cast<const std::byte*>(first),
                   .first_pos = seq.new_pos,
                   .count = first != nullptr ? seq.num_new() : 0};
    }
    seq.state->Commit(
        {.num_tokens = seq.num_given,
         .rings = {rings, static_cast<size_t>(num_rings)},
         .groups = {groups, num_sections},
         .classes = step.classes == nullptr ? nullptr : step.classes + seq.first_row});
  }
}

namespace {

// Rows of one array, moved to the front together with the others.
template <typename T>
void MoveRows(T* rows, int64_t from, int64_t to, int64_t count, int64_t width) {
  if (rows == nullptr || from == to) return;
  std::copy(rows + from * width, rows + (from + count) * width, rows + to * width);
}

void MoveRowsOf(Step& step, int64_t from, int64_t to, int64_t count) {
  const ModelConfig& c = step.config();
  const int64_t half = c.rope_dim / 2;
  MoveRows(step.h, from, to, count, int64_t{c.num_streams} * c.hidden_size);
  MoveRows(step.x, from, to, count, c.hidden_size);
  MoveRows(step.pos, from, to, count, 1);
  MoveRows(step.is_image, from, to, count, 1);
  for (float* factors : {step.window_rope.cos, step.window_rope.sin, step.compressed_rope.cos,
                         step.compressed_rope.sin}) {
    MoveRows(factors, from, to, count, half);
  }
  MoveRows(step.selection.selected, from, to, count, c.index_top_k);
  MoveRows(step.selection.num_selected, from, to, count, 1);
  MoveRows(step.selection.blocks, from, to, count, c.candidate_top_blocks);
  MoveRows(step.selection.num_blocks, from, to, count, 1);
}

// First position of a sequence whose row goes through the layer: where the prefill mode says, and
// in the decoder not before the end of a prefix hit.
int64_t FirstThrough(const ModelConfig& c, const SequenceStep& seq, int layer) {
  const int64_t prompt_len = seq.state->prompt_len;
  const int64_t cut =
      seq.begin_pos < prompt_len ? ComputeFrom(c, seq.prefill, prompt_len, layer) : 0;
  return layer < c.first_decoder_layer() ? cut : std::max(cut, seq.new_pos);
}

}  // namespace

bool NarrowRows(Step& step, int layer) {
  int64_t rows = 0;
  for (SequenceStep& seq : step.sequences) {
    const int64_t from = FirstThrough(step.config(), seq, layer);
    const int64_t dropped = std::clamp<int64_t>(from - seq.begin_pos, 0, seq.num_rows);
    const int64_t kept = seq.num_rows - dropped;
    MoveRowsOf(step, seq.row_begin + dropped, rows, kept);
    seq.row_begin = rows;
    seq.num_rows = kept;
    seq.begin_pos += dropped;
    rows += kept;
  }
  step.rows = rows;
  return rows > 0;
}

void NoteDraftTarget(Step& step, int layer) {
  if (step.main_hidden == nullptr) return;
  const ModelConfig& c = step.config();
  const auto found = std::find(c.draft_target_layers.begin(), c.draft_target_layers.end(), layer);
  const int64_t part = found - c.draft_target_layers.begin();
  const int64_t stride = static_cast<int64_t>(c.draft_target_layers.size()) * c.hidden_size;
  for (const SequenceStep& seq : step.sequences) {
    MeanStreams(step.context,
                {.h = step.h + seq.row_begin * c.num_streams * c.hidden_size,
                 .num_streams = c.num_streams,
                 .dim = c.hidden_size,
                 .round = step.round(),
                 .y = step.main_hidden + seq.batch_row() * stride + part * c.hidden_size,
                 .y_stride = stride},
                seq.num_rows);
  }
}

}  // namespace deepinfer
