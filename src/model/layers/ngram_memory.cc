#include "model/layers/ngram_memory.h"

#include <algorithm>

#include "kernels/ops.h"
#include "model/layers/linear.h"

namespace deepinfer {
namespace {

// Bytes of one table row's scales.
constexpr int64_t kScaleBlock = 32;

// Classes of the row's position and the ones before it, newest first, as the hash reads them.
void LookBack(const Step& step, const SequenceStep& seq, int64_t i, std::span<int32_t> classes) {
  const int64_t pos = seq.begin_pos + i;
  for (size_t back = 0; back < classes.size(); ++back) {
    const int64_t at = pos - static_cast<int64_t>(back);
    classes[back] = at < 0                ? NgramLayout::kDeadClass
                    : at >= seq.begin_pos ? step.classes[seq.row_begin + at - seq.begin_pos]
                                          : seq.state->ClassAt(at);
  }
}

// Table rows of every batch row for one n-gram layer: [rows, row_count].
void HashRows(const Step& step, int table, int64_t* table_rows) {
  const ModelConfig& c = step.config();
  const int64_t count = c.ngram_row_count();
  int32_t classes[16];
  for (const SequenceStep& seq : step.sequences) {
    for (int64_t i = 0; i < seq.num_rows; ++i) {
      const std::span<int32_t> look_back(classes, static_cast<size_t>(c.ngram_max_order));
      LookBack(step, seq, i, look_back);
      step.parts.ngram_layout->Rows(
          table, look_back, {table_rows + (seq.row_begin + i) * count, static_cast<size_t>(count)});
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
