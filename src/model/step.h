// One Forward in flight: its rows, the residual streams, what layers share, and what will be
// committed.  Private to the model; everything lives in the context's scratch memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/kernels.h"
#include "model/transformer.h"

namespace deepinfer {

// Cancelled once the context was asked to stop: what the step computed since may be incomplete.
inline Status CheckNotStopped(const ExecContext& context) {
  return context.StopRequested() ? Cancelled("stopped before the step was complete") : Status::Ok();
}

// The rows of one sequence inside the batch.  A prefill mode drops leading rows on the way through
// the decoder (NarrowRows); what is left stays contiguous.
struct SequenceStep {
  SequenceState* state;
  PrefillOptions prefill;
  int64_t row_begin;
  int64_t num_rows;
  int64_t begin_pos;  // of the first row that is left
  std::span<const BatchRow> upcoming;
  // As the batch gave them:
  int64_t first_row;
  int64_t first_pos;  // = state->len()
  int64_t num_given;
  // Rows from new_pos on write compressed entries; the ones before it run behind a prefix hit and
  // rebuild window rows only.
  int64_t new_pos;
  int64_t new_row;  // of new_pos, counting such rows over the batch

  int64_t end_pos() const { return begin_pos + num_rows; }
  int64_t num_new() const { return std::max<int64_t>(0, first_pos + num_given - new_pos); }
  int64_t new_end() const { return new_pos + num_new(); }
  // Batch row of the first row that is left.
  int64_t batch_row() const { return first_row + begin_pos - first_pos; }
};

// Rotary factors of a list of positions.
struct CosSin {
  float* cos;  // [positions, rope_dim/2]
  float* sin;
};

// What an index source chose and the layers after it reuse (model.md section 7.5).
struct Selection {
  int32_t* selected;      // [rows, index_top_k], ascending entries
  int32_t* num_selected;  // [rows]
  int32_t* blocks;        // [rows, candidate_top_blocks], ascending candidate blocks
  int32_t* num_blocks;    // [rows]
};

struct Step {
  ExecContext& context;
  const TransformerParts& parts;
  std::vector<ExpertLease>& leases;  // of the layer that runs
  LayerObserver* observer;           // may be null

  int64_t rows;      // that are left
  int64_t capacity;  // rows of the batch
  std::span<SequenceStep> sequences;
  const int32_t* tokens;              // [rows]
  const uint16_t* const* embeddings;  // [rows], entries may be null
  int64_t* pos;                       // [rows]
  uint8_t* is_image;                  // [rows]
  const int32_t* classes;             // [capacity]; null without n-gram memory
  const RopeTable& compressed_rope_table;
  CosSin window_rope;      // of pos, for window-only layers
  CosSin compressed_rope;  // of pos, for layers with compressed KV

  float* h;            // [rows, S, hidden] residual streams
  float* pre;          // [rows, S] mix that the next sub-block reads
  float* x;            // [rows, hidden] sub-block input
  float* y;            // [rows, hidden] sub-block output
  float* main_hidden;  // [rows, draft targets * hidden]; null when nobody wants it

  std::byte* window_rows;     // [rings, capacity, window_row_bytes] written by this step
  StepWrites::Rows* written;  // [rings, sequences] what of them was written
  float** groups;             // [sections] -> [new rows, 2, head_dim]; null for ratio 1
  Selection selection;
  const uint8_t* ngram_codes;   // [ngram layers, capacity, row_count, ngram_head_dim] e4m3
  const uint8_t* ngram_scales;  // the same / 32

  const ModelConfig& config() const { return *parts.config; }
  const KvLayout& layout() const { return sequences.front().state->layout(); }
  bool round() const { return parts.numerics == Numerics::kRelease; }
  ScratchArena& scratch() const { return context.scratch(); }

  // Rotary factors of compressed entries at these positions; valid until the scratch scope ends.
  CosSin RopeAt(const int64_t* positions, int64_t count) const;
  const CosSin& RopeOf(int layer) const {
    return config().compress_ratios[static_cast<size_t>(layer)] > 0 ? compressed_rope : window_rope;
  }
  // Where the row of `ring` for the batch's row lies in window_rows.
  std::byte* WindowRow(int ring, int64_t row) const {
    return window_rows + (ring * capacity + row) * layout().window_row_bytes();
  }

  StepWrites::Rows& WrittenTo(int ring, size_t sequence) const {
    return written[static_cast<size_t>(ring) * sequences.size() + sequence];
  }

  void Note(const char* name, int layer, int64_t cols, const float* values) const {
    if (observer != nullptr) observer->OnValues(name, layer, rows, cols, values);
  }
  void Note(const char* name, int layer, int64_t cols, const int32_t* values) const {
    if (observer != nullptr) observer->OnIndices(name, layer, rows, cols, values);
  }
};

}  // namespace deepinfer
