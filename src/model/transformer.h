// The network: rows of tokens in, logits out, sequence states advanced.
//
// A Forward takes rows of one or several sequences, any number of each, and gives every row the
// bits it would have alone: prefill in one piece, in chunks, token by token, or beside others.
// Either the whole step is committed to all its sequences or nothing is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/exec_context.h"
#include "kernels/rope_table.h"
#include "kv/sequence_state.h"
#include "model/config.h"
#include "model/ngram_layout.h"
#include "model/numerics.h"
#include "model/prefill.h"
#include "model/weights.h"
#include "weights/expert_source.h"
#include "weights/ngram_source.h"

namespace deepinfer {

enum class RowKind : uint8_t { kText, kImage };

// One row of a batch.  The kind decides the gate's bias, the n-gram gate and its look-back.
struct BatchRow {
  int32_t token = 0;
  int64_t pos = 0;  // continues its sequence
  RowKind kind = RowKind::kText;
  const uint16_t* embedding = nullptr;  // [hidden] bf16 instead of the token's own; may be null
};

// Class id of a row as the n-gram memory reads it.
int32_t ClassOfRow(const NgramLayout& ngrams, const BatchRow& row);

// The next num_rows rows of the batch belong to this sequence.
struct SequenceSlice {
  SequenceState* state = nullptr;
  int64_t num_rows = 0;
  // How its prompt rows (positions below state->prompt_len) are cut; the same for all of its
  // chunks.
  PrefillOptions prefill = PrefillOptions::Full();
  // Rows that will follow these in a later step, as far as they are known; may be empty.  Only a
  // hint: their n-gram rows are asked for now, so that the disk reads while this step computes.
  std::span<const BatchRow> upcoming = {};
};

struct ForwardBatch {
  std::span<const BatchRow> rows;  // <= kMaxBatchRows, sequence by sequence, positions ascending
  std::span<const SequenceSlice> slices;  // together they cover the rows
  std::span<const int32_t>
      logit_rows;  // rows that want logits, ascending; a prefill mode keeps them
};

struct ForwardOutput {
  float* logits = nullptr;  // [logit_rows, vocab_size]
  // [rows, draft targets * hidden], DSpark's input; rows that a prefill mode cut before the last
  // target layer are left as they are.  May be null.
  float* main_hidden = nullptr;
};

// Most rows of one Forward.  Weights are read once per call, and at 2,048 rows reading them is far
// below computing with them; activations take about 0.35 MB a row at the released dimensions.
inline constexpr int64_t kMaxBatchRows = 2048;

// Watches a Forward, for traces and golden checks.  All pointers are valid during the call only.
class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  // What enters a layer: h [rows, S, hidden] and pre [rows, S]; may be overwritten.
  virtual void OnLayerInput(int /*layer*/, int64_t /*rows*/, float* /*h*/, float* /*pre*/) {}
  // A named value of a layer (layer -1: of the model), [rows, cols].
  virtual void OnValues(const char* /*name*/, int /*layer*/, int64_t /*rows*/, int64_t /*cols*/,
                        const float* /*values*/) {}
  virtual void OnIndices(const char* /*name*/, int /*layer*/, int64_t /*rows*/, int64_t /*cols*/,
                         const int32_t* /*values*/) {}
};

// What a Transformer borrows; everything must outlive it.
struct TransformerParts {
  const ModelConfig* config = nullptr;
  const ModelWeights* weights = nullptr;
  const NgramLayout* ngram_layout = nullptr;  // null without n-gram memory
  ExpertSource* experts = nullptr;
  NgramSource* ngram_tables = nullptr;  // null without n-gram memory
  Numerics numerics = Numerics::kRelease;
  // Test switch for the published decode loop's quirk (model.md section 7.6): while a group of
  // ratio > 1 is open, its indexer scores the keys of the last KV source.
  bool released_index_keys = false;
};

struct Step;

// Not thread-safe: one Forward at a time, on the given context.
class Transformer {
 public:
  explicit Transformer(const TransformerParts& parts);
  ~Transformer();

  // The memory shape of this model's sequences.
  static KvShape ShapeOf(const ModelConfig& config, Numerics numerics);

  // Cancelled, with all states as they were, when the context was asked to stop.
  Status Forward(ExecContext& context, const ForwardBatch& batch, const ForwardOutput& output,
                 LayerObserver* observer = nullptr);

  const ModelConfig& config() const { return *parts_.config; }
  Numerics numerics() const { return parts_.numerics; }

 private:
  void Embed(Step& step) const;
  Status RunLayer(Step& step, int layer) const;
  void Head(Step& step, const ForwardBatch& batch, const ForwardOutput& output) const;

  TransformerParts parts_;
  std::vector<ExpertLease> leases_;  // empty between layers; kept for its capacity
  RopeTable window_rope_;            // window-only layers
  RopeTable compressed_rope_;        // layers with compressed KV
};

}  // namespace deepinfer
