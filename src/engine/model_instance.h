// A checkpoint ready to run: configuration, tokenizer, weights, KV memory and the transformer over
// them, in the order in which each needs the one before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "engine/memory_plan.h"
#include "io/file.h"
#include "kernels/exec_context.h"
#include "kv/block_pool.h"
#include "kv/layout.h"
#include "kv/sequence_state.h"
#include "kv/set_aside.h"
#include "model/config.h"
#include "model/ngram_layout.h"
#include "model/numerics.h"
#include "model/transformer.h"
#include "model/weights.h"
#include "tokenizer/tokenizer.h"
#include "weights/checkpoint.h"

namespace deepinfer {

struct ModelOptions {
  Path dir;          // config.json, tokenizer.json, and the weights
  Path weights_dir;  // where the weights are; empty: in dir
  Numerics numerics = Numerics::kRelease;
  std::string isa;  // DEEPINFER_ISA; empty: the best one
  int threads = 0;  // compute threads; 0: as many as the process may use
  // Wishes that the memory plan grants or refuses; 0: its choice (engine/memory_plan.h).
  int64_t memory = 0;                // budget in bytes; 0: what the process may use of the machine
  int64_t kv_cache_memory = 0;       // bytes of KV blocks
  int64_t max_model_len = 0;         // tokens of one sequence
  int64_t max_sequences = 1;         // in flight at a time
  int64_t max_batch_rows = 0;        // of one step
  bool released_index_keys = false;  // TransformerParts
  OnFileOpened on_file;              // may be empty
};

// Immutable after Load but for the pool, the context and the sources, which the step thread uses.
class ModelInstance {
 public:
  static Result<std::unique_ptr<ModelInstance>> Load(const ModelOptions& options);

  const ModelConfig& config() const { return config_; }
  // Null for a checkpoint without tokenizer.json.
  const Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }
  Transformer& transformer() { return *transformer_; }
  ExecContext& context() { return *context_; }
  const KvLayout& layout() const { return *layout_; }
  const StateIdentity& identity() const { return identity_; }
  const ModelWeights& weights() const { return *weights_; }
  const MemoryPlan& memory_plan() const { return plan_; }
  // Tokens that prompt and output of one sequence may have together.
  int64_t max_model_len() const { return plan_.max_model_len; }
  // Sequences in flight that there is memory for.  One of max_model_len() always fits into the
  // pool; where all of them at once do not, one has to be set aside (engine/sequence_run.h).
  int64_t max_sequences() const { return plan_.max_sequences; }
  // Rows of a step that there is memory for.
  int64_t max_batch_rows() const { return plan_.max_batch_rows; }
  const Path& dir() const { return options_.dir; }
  // KV memory that sequences hold, and that there is.  Of the step thread.
  int64_t kv_bytes_in_use() const { return pool_->num_in_use() * layout_->block_bytes(); }
  int64_t kv_bytes() const { return pool_->num_blocks() * layout_->block_bytes(); }
  // Bytes of all tensors of the checkpoint.
  int64_t weight_bytes() const;

  SequenceState NewSequence() { return SequenceState(*layout_, *pool_); }
  // The sequence of a prompt whose first hit.len rows a cache holds; what runs next is the row at
  // hit.replay.start.  Precondition: hit.len <= prompt - KeptRows() (FindUsableHit).
  SequenceState NewSequence(const CachedPrefix& hit, std::span<const BatchRow> prompt,
                            const PrefillOptions& prefill);
  // A sequence that was set aside, as it was.
  Result<SequenceState> RestoreSequence(const SetAsideState& state) {
    return state.Restore(identity_, *layout_, *pool_);
  }
  SetAsideMemory& set_aside() { return *set_aside_; }
  const BlockPool& pool() const { return *pool_; }
  // A sequence from the bytes that its Serialize(identity()) gave.
  Result<SequenceState> RestoreSequence(std::string_view bytes) {
    return SequenceState::Deserialize(bytes, identity_, *layout_, *pool_);
  }

 private:
  explicit ModelInstance(ModelOptions options) : options_(std::move(options)) {}
  Status LoadParts();
  Status LoadNgramMemory();
  Status AllocateMemory();

  ModelOptions options_;
  ModelConfig config_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<Checkpoint> checkpoint_;
  std::optional<ModelWeights> weights_;
  std::optional<NgramLayout> ngram_layout_;
  std::unique_ptr<ExpertSource> experts_;
  std::unique_ptr<NgramSource> ngram_tables_;
  std::unique_ptr<ExecContext> context_;
  std::optional<KvLayout> layout_;
  std::optional<BlockPool> pool_;
  std::optional<SetAsideMemory> set_aside_;
  StateIdentity identity_;
  MemoryPlan plan_;
  std::unique_ptr<Transformer> transformer_;
};

}  // namespace deepinfer
