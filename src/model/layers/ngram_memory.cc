#include "model/layers/ngram_memory.h"

#include <algorithm>

#include "kernels/ops.h"
#include "model/layers/linear.h"

namespace deepinfer {
namespace {

// Bytes of one table row's scales.
constexpr int64_t kScaleBlock = 32;

// Class of a position of the sequence: committed, of this step, or of the rows that follow it.
int32_t ClassAt(const Step& step, const SequenceStep& seq, int64_t pos) {
  if (pos < 0) return NgramLayout::kDeadClass;
  if (pos < seq.begin_pos) return seq.state->ClassAt(pos);
  if (pos < seq.end_pos()) return step.classes[seq.row_begin + pos - seq.begin_pos];
  return ClassOfRow(*step.parts.ngram_layout,
                    seq.upcoming[static_cast<size_t>(pos - seq.end_pos())]);
}

// Table rows of positions [begin, end) for one n-gram layer: [end - begin, row_count].
void HashPositions(const Step& step, const SequenceStep& seq, int table, int64_t begin, int64_t end,
                   int64_t* table_rows) {
  const ModelConfig& c = step.config();
  const int64_t count = c.ngram_row_count();
  int32_t classes[16];  // of the position and the ones before it, newest first
  const std::span<int32_t> look_back(classes, static_cast<size_t>(c.ngram_max_order));
  for (int64_t pos = begin; pos < end; ++pos) {
    for (size_t back = 0; back < look_back.size(); ++back) {
      look_back[back] = ClassAt(step, seq, pos - static_cast<int64_t>(back));
    }
    step.parts.ngram_layout->Rows(table, look_back,
                                  {table_rows + (pos - begin) * count, static_cast<size_t>(count)});
  }
}

// Table rows of every batch row for one n-gram layer: [rows, row_count].
void HashRows(const Step& step, int table, int64_t* table_rows) {
  const int64_t count = step.config().ngram_row_count();
  for (const SequenceStep& seq : step.sequences) {
    HashPositions(step, seq, table, seq.begin_pos, seq.end_pos(),
                  table_rows + seq.row_begin * count);
  }
}

// Asks for the rows of what follows this step.
void PrefetchUpcoming(const Step& step) {
  const int64_t count = step.config().ngram_row_count();
  for (const SequenceStep& seq : step.sequences) {
    const auto rows = static_cast<int64_t>(seq.upcoming.size());
    if (rows == 0) continue;
    const ScratchArena::Scope scope(step.scratch());
    auto* table_rows = step.scratch().Alloc<int64_t>(rows * count);
    for (size_t table = 0; table < step.config().ngram_layers.size(); ++table) {
      const int index = static_cast<int>(table);
      HashPositions(step, seq, index, seq.end_pos(), seq.end_pos() + rows, table_rows);
      step.parts.ngram_tables->Prefetch(index, {table_rows, static_cast<size_t>(rows * count)});
    }
  }
}

void NoteRows(const Step& step, int layer, const int64_t* table_rows, int64_t count) {
  if (step.observer == nullptr) return;
  auto* narrow = step.scratch().Alloc<int32_t>(step.rows * count);
  std::copy_n(table_rows, step.rows * count, narrow);
  step.Note("engram_rows", layer, count, narrow);
}

}  // namespace

Status FetchNgramRows(Step& step) {
  const ModelConfig& c = step.config();
  const int64_t count = c.ngram_row_count();
  const int64_t per_layer = step.rows * count;
  const auto layers = static_cast<int64_t>(c.ngram_layers.size());
  auto* codes = step.scratch().Alloc<uint8_t>(layers * per_layer * c.ngram_head_dim);
  auto* scales = step.scratch().Alloc<uint8_t>(layers * per_layer * c.ngram_head_dim / kScaleBlock);
  step.ngram_codes = codes;
  step.ngram_scales = scales;
  const ScratchArena::Scope scope(step.scratch());
  auto* table_rows = step.scratch().Alloc<int64_t>(std::max<int64_t>(1, layers * per_layer));
  for (int64_t table = 0; table < layers; ++table) {
    HashRows(step, static_cast<int>(table), table_rows + table * per_layer);
    step.parts.ngram_tables->Prefetch(
        static_cast<int>(table), {table_rows + table * per_layer, static_cast<size_t>(per_layer)});
  }
  for (int64_t table = 0; table < layers; ++table) {
    const int64_t at = table * per_layer * c.ngram_head_dim;
    RETURN_IF_ERROR(step.parts.ngram_tables->Fetch(
        static_cast<int>(table), {table_rows + table * per_layer, static_cast<size_t>(per_layer)},
        codes + at, scales + at / kScaleBlock));
    NoteRows(step, c.ngram_layers[static_cast<size_t>(table)], table_rows + table * per_layer,
             count);
  }
  PrefetchUpcoming(step);
  return Status::Ok();
}

void NgramMemory(Step& step, int layer) {
  const ModelConfig& c = step.config();
  const NgramWeights& w = *step.parts.weights->layers[static_cast<size_t>(layer)].ngram;
  const auto found = std::find(c.ngram_layers.begin(), c.ngram_layers.end(), layer);
  const int64_t table = found - c.ngram_layers.begin();
  const int64_t width = c.ngram_row_count() * c.ngram_head_dim;
  const int64_t at = table * step.capacity * width;
  const ScratchArena::Scope scope(step.scratch());

  auto* e = step.scratch().Alloc<float>(step.rows * width);
  for (const SequenceStep& seq : step.sequences) {
    const int64_t from = at + seq.batch_row() * width;
    DecodeFp8Rows(step.context,
                  {.codes = step.ngram_codes + from,
                   .scales = step.ngram_scales + from / kScaleBlock,
                   .dim = width,
                   .y = e + seq.row_begin * width},
                  seq.num_rows);
  }
  auto* kv = step.scratch().Alloc<float>(step.rows * w.wkv.n);
  Linear(step, Quantize(step, e, step.rows, w.wkv), w.wkv, kv);
  NgramGate(step.context,
            {.kv = kv,
             .q_weight = w.q_weight,
             .k_weight = w.k_weight,
             .is_image = step.is_image,
             .num_streams = c.num_streams,
             .dim = c.hidden_size,
             .eps = c.rms_norm_eps,
             .round = step.round(),
             .h = step.h},
            step.rows);
  step.Note("engram_out", layer, int64_t{c.num_streams} * c.hidden_size, step.h);
}

}  // namespace deepinfer
