// Decides which requests run and which rows go into the next step.  A pure decision core: no IO, no
// clock, no threads, no random numbers, no memory of tensors; time is an argument, and the same
// calls give the same plans.
//
//              Add                admitted               Finish
//   (caller) -------> waiting ---------------> running ---------> (forgotten)
//                        ^                        |
//                        +------ preempted -------+        Cancel, refusals: from anywhere
//
// The rules, in the order in which Plan() applies them:
//   1. A waiting request whose first token is overdue is refused.
//   2. Running sequences have reserved the blocks of all their known tokens.  Where decoding made
//      that more than there is, the lowest priority is preempted, of equals the latest; never the
//      first of all, so that one always goes on.
//   3. Waiting requests are admitted, the most urgent first, while there is a place, and blocks for
//      all their known tokens and one more for every running sequence.  A request that lacks them
//      takes them from running ones of lower priority, or lets smaller ones pass, but only until it
//      has waited for aging_us.
//   4. Every running sequence that decodes gets its row: no prompt delays an answer that has begun.
//   5. Prompts share what is left of the token and time budgets, the most urgent first.  Where
//      decode rows use up the time, a small chunk goes in every few steps anyway.
//   6. When nothing can go on at all, the least urgent is refused: the others go on.
// The most urgent is the highest priority; of equals the one with the fewest prompt rows left; then
// the first to arrive.  A priority rises by one for each aging_us without a row: nothing starves.
// A paused sequence gets no rows and gives way to anybody who wants its place or blocks; it waits
// until it is paused no more.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "sched/cost_model.h"
#include "sched/scheduled_sequence.h"
#include "sched/step_plan.h"

namespace deepinfer {

class Scheduler {
 public:
  explicit Scheduler(const SchedulerLimits& limits, const StepCosts& assumed = kUnmeasuredCosts);

  // Takes a request in, to wait.  ResourceExhausted for one that needs more blocks than the pool
  // has: it could never end.
  Status Add(const RequestFacts& facts);
  // Forgets a request in any state, also while a step with its rows is being computed: it ended, or
  // nobody wants it any more.  Nothing happens for one that is not known.
  void Remove(RequestId id);

  // A paused request gets no rows, and no place if it has none, until it is paused no more.
  void SetPaused(RequestId id, bool paused);

  // Decides the next step.  Its refusals, preemptions and admissions have happened as far as the
  // scheduler is concerned; its rows only when Advance() says so, and a plan whose rows are dropped
  // is followed by one that plans them again.  now_us never runs backwards.
  void Plan(int64_t now_us, const StepBudget& budget, StepPlan& plan);
  // The rows of a sequence in the last plan are computed.  Its last known token's row brought the
  // next token.  Nothing happens for an id that is not known.
  void Advance(RequestId id, int64_t num_tokens, int64_t now_us);
  // The whole state of a sequence that the last plan preempted could not be kept, only its tokens.
  // Precondition: may_recompute.
  void NoteStateLost(RequestId id);
  // The time that a step took.
  void ObserveStep(const StepLoad& load, double elapsed_us) { costs_.Observe(load, elapsed_us); }

  bool idle() const { return sequences_.empty(); }
  int64_t num_waiting() const;
  int64_t num_running() const;
  const SchedulerLimits& limits() const { return limits_; }
  const CostModel& costs() const { return costs_; }

  // Invariants between lengths, states and blocks; for tests and idle checks.
  bool CheckIntegrity() const;

 private:
  // What can still be given away while a step is planned.
  struct Room {
    int64_t unreserved_blocks = 0;  // beyond what the running ones reserved; negative: too few
    int64_t free_blocks = 0;        // reserved or not
    int64_t set_aside_bytes = 0;
  };

  ScheduledSequence* Find(RequestId id);
  int64_t BlocksFor(int64_t num_tokens) const;
  // Blocks that it lacks for all its known tokens.
  int64_t MissingBlocks(const ScheduledSequence& sequence) const;
  bool IsAged(const ScheduledSequence& sequence) const;

  void RefuseOverdue(StepPlan& plan);
  void ListSequences(const StepBudget& budget);
  bool PreemptForGrowth(StepPlan& plan);
  void Admit(StepPlan& plan);
  bool TryAdmit(ScheduledSequence& sequence, bool from_victims_only, StepPlan& plan);
  bool ChooseVictims(const ScheduledSequence& sequence, Room room, int64_t places);
  std::optional<PreemptKind> KindOf(const ScheduledSequence& sequence, const Room& room) const;
  void TakeBack(const ScheduledSequence& sequence, PreemptKind kind, Room& room) const;
  void Preempt(ScheduledSequence* victim, StepPlan& plan);
  void PlanDecodeRows(StepPlan& plan);
  void PlanPromptRows(StepPlan& plan);
  int64_t ChunkOf(const ScheduledSequence& sequence, const StepPlan& plan, int64_t most) const;
  void PlanRows(const ScheduledSequence& sequence, int64_t num_tokens, StepPlan& plan);
  bool IsStuck(const StepPlan& plan) const;
  void RefuseOneThatBlocks(StepPlan& plan);

  SchedulerLimits limits_;
  CostModel costs_;
  std::vector<ScheduledSequence> sequences_;  // all that are known, ids ascending
  int64_t steps_without_prompt_rows_ = 0;     // while there were some to plan

  // The step that is being planned; kept for their capacity.  Pointers into sequences_.
  int64_t now_us_ = 0;
  Room room_;
  std::vector<ScheduledSequence*> running_;  // best standing first, then those just admitted
  std::vector<ScheduledSequence*> waiting_;  // most urgent first, without those just preempted
  std::vector<ScheduledSequence*> prompts_;  // running ones with prompt rows left
  std::vector<ScheduledSequence*> victims_;
};

}  // namespace deepinfer
