// How a memory budget is divided, before any of it is taken: what the process allocates, and what
// stays of the mapped weights.  Pure arithmetic: sizes and wishes in, a plan or the reason why
// there is none out.  docs/design/0006-memory-and-preemption.md says how to read it.
//
// Anonymous memory is taken; the plan is its upper bound.  Mapped weights live in the page cache:
// what every token reads should stay there, so its room is part of the plan; experts and n-gram
// tables have what is left, and are read from disk where that is less than they are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "kv/layout.h"
#include "model/config.h"
#include "model/numerics.h"
#include "model/step_size.h"

namespace deepinfer {

// Most rows of a step unless a budget is small, and the fewest that it is cut down to.
inline constexpr int64_t kMinPlannedRows = 128;
// Most sequences in flight where nobody says how many.
inline constexpr int64_t kMaxDerivedSequences = 64;

// Sizes that follow from the model, in bytes.
struct MemorySizes {
  int64_t process = 0;    // tokenizer, indices, tables, the program itself
  int64_t dense = 0;      // mapped, read for every token
  int64_t experts = 0;    // mapped, a few of them for every token
  int64_t tables = 0;     // mapped, a few rows for every token
  int64_t sequence = 0;   // of one in flight beside its KV blocks
  int64_t set_aside = 0;  // of one that is set aside whole, beside its KV blocks
  int64_t block = 0;      // of kBlockTokens
  int64_t longest = 0;    // tokens of a sequence that the model allows
  std::function<int64_t(const StepShape&)> step;  // scratch and kernel work areas
};

// Of a model whose mapped parts have these bytes.
MemorySizes SizesOf(const ModelConfig& config, const KvLayout& layout);

// What is asked for; 0: the plan's choice.
struct MemoryRequest {
  int64_t budget = 0;          // --memory; must be set
  int64_t kv_cache = 0;        // --kv-cache-memory
  int64_t max_model_len = 0;   // --max-model-len
  int64_t max_sequences = 0;   // --max-num-seqs
  int64_t max_batch_rows = 0;  // of one step
  int threads = 1;
};

// Bytes where nothing else is said.
struct MemoryPlan {
  int64_t budget = 0;
  // What fits:
  int64_t max_model_len = 0;   // tokens; the pool holds at least one sequence of that length
  int64_t max_sequences = 0;   // in flight; together they may need more blocks than there are
  int64_t max_batch_rows = 0;  // of one step
  int64_t num_blocks = 0;      // of the pool
  // Anonymous:
  int64_t process = 0;
  int64_t step = 0;       // scratch of the largest step, kernel work areas
  int64_t sequences = 0;  // what they have beside KV blocks
  int64_t kv_cache = 0;
  int64_t set_aside = 0;  // most for sequences that are set aside whole
  // Mapped:
  int64_t dense = 0;             // all of it stays
  int64_t experts = 0;           // in the checkpoint
  int64_t experts_resident = 0;  // of them, as far as there is room
  int64_t tables = 0;
  int64_t tables_resident = 0;

  int64_t anonymous() const { return process + step + sequences + kv_cache + set_aside; }
  bool all_experts_resident() const { return experts_resident >= experts; }
  int64_t resident() const { return anonymous() + dense + experts_resident + tables_resident; }
};

// ResourceExhausted when the budget is too small for what was asked: the message says what is
// needed for what, what was given, and which flags change it.  InvalidArgument for wishes out of
// the model's range.
Result<MemoryPlan> PlanMemory(const MemorySizes& sizes, const MemoryRequest& request);

// One line: "memory budget 24.0 GB: ..."
std::string PlanLine(const MemoryPlan& plan);

}  // namespace deepinfer
