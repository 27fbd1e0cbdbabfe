// What the scheduler is told and what it answers: plain values.  Times are microseconds of one
// clock that the caller reads; lengths are tokens.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "sched/cost_model.h"

namespace deepinfer {

using RequestId = int64_t;

inline constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

// A request as the scheduler sees it.
struct RequestFacts {
  RequestId id = 0;               // greater than that of every request before it
  int64_t prompt_len = 0;         // > 0
  int64_t max_tokens = 0;         // most output tokens, > 0
  int64_t num_cached_tokens = 0;  // of the prompt, whose KV blocks exist; < prompt_len
  int64_t computed_len = 0;       // where its rows begin: < num_cached_tokens for a replay
  int64_t max_chunk = 0;          // most prompt rows in one step; 0: no limit of its own
  int priority = 0;               // higher goes first
  int64_t arrival_us = 0;
  int64_t deadline_us = kNoDeadline;  // when its first token is due
  // Its rows may be computed again from its tokens.  Not those of a bounded replay: their bits
  // depend on where the prefix hit lay, and the cache may hold another one by then.
  bool may_recompute = true;
};

// Fixed for the life of a scheduler.
struct SchedulerLimits {
  int64_t max_num_seqs = 1;            // running at a time
  int64_t max_num_batched_tokens = 1;  // rows of a step; raised to max_num_seqs if it is lower
  // Prompt rows of one sequence in a step.  From 32,768 to 65,536 a prefill engine gains 2.7% of
  // throughput for 1.95 times the latency (by the release's deployment guide).  An engine whose
  // forward pass takes fewer rows says so through max_num_batched_tokens, which then binds first.
  int64_t max_chunk = 32'768;
  int64_t step_time_budget_us = 0;  // 0: none
  int64_t aging_us = 5'000'000;     // waiting so long lifts a request by one priority
  int64_t block_tokens = 128;       // tokens of one KV block
  int64_t num_blocks = 0;           // of the whole pool
  // Bytes of a state that is set aside whole.
  int64_t state_bytes = 0;  // of any
  int64_t block_bytes = 0;  // for each KV block besides
};

// How things stand when a step is planned.
struct StepBudget {
  int64_t free_blocks = 0;      // that can be had: free, or held by nothing but a cache
  int64_t set_aside_bytes = 0;  // left for states that are set aside whole
};

// Rows of one sequence in a step.
struct StepRows {
  RequestId id = 0;
  int64_t num_tokens = 0;  // >= 1
  Phase phase = Phase::kDecode;

  friend bool operator==(const StepRows&, const StepRows&) = default;
};

// What is kept of a sequence that is preempted.
enum class PreemptKind : uint8_t {
  kWhole,   // all of its state, outside the KV pool
  kTokens,  // its tokens; their rows are computed again
};

struct Preemption {
  RequestId id = 0;
  PreemptKind kind = PreemptKind::kWhole;

  friend bool operator==(const Preemption&, const Preemption&) = default;
};

enum class RefuseReason : uint8_t {
  kDeadline,  // waited past the time at which its first token was due
  kNoBlocks,  // too few KV blocks can be had even with nothing else running
};
std::string_view RefuseReasonText(RefuseReason reason);

struct Refusal {
  RequestId id = 0;
  RefuseReason reason = RefuseReason::kDeadline;

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// One step, to be carried out in the order of the fields.  The vectors are reused from step to
// step.
struct StepPlan {
  std::vector<Refusal> refusals;        // end these; the scheduler has forgotten them
  std::vector<Preemption> preemptions;  // take their memory back; they wait again
  std::vector<RequestId> admissions;    // start these, or resume what was preempted
  std::vector<StepRows> rows;           // decode rows, then prompt chunks: one forward pass
  StepLoad load;                        // of the rows
  double predicted_us = 0;              // for them

  void Clear();
};

}  // namespace deepinfer
