// Many requests on one model: each step is one Forward over rows of several of them.
//
// The result of a request is the same bits whatever runs beside it, in which order requests came,
// and how their prompts were cut: rows do not see each other's sequences (model/transformer.h), and
// a token depends on its own logits, parameters, seed and position only (sampling/sampler.h).
//
// Which requests run and which rows a step has is the scheduler's decision (sched/scheduler.h); the
// engine tells it what there is, carries its plans out and says what became of them.
//
//   Submit -> waiting -> (plan) admitted, memory allocated -> steps -> finished -> OnFinish
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/model_instance.h"
#include "engine/request.h"
#include "engine/sequence_run.h"
#include "sched/scheduler.h"

namespace deepinfer {

struct BatchLimits {
  int64_t max_sequences = 0;  // in flight at a time; 0: all that the model has KV memory for
  // Rows of one step; 0: all that the model has memory for, which is also the most (and no more
  // than kMaxBatchRows).  A step is one Forward, so that it is committed as a whole: no chunk of a
  // prompt is longer.
  int64_t max_rows = 0;
  int64_t step_time_budget_ms = 0;  // for which prompts are cut; 0: none
};

// What Submit demands of a request; callable from any thread.
Status CheckRequest(const ModelInstance& model, const GenerationRequest& request);

// Used by the step thread alone.  The model must outlive it and have a tokenizer.
class BatchEngine {
 public:
  using RequestId = deepinfer::RequestId;

  explicit BatchEngine(ModelInstance& model, const BatchLimits& limits = {});
  BatchEngine(const BatchEngine&) = delete;
  BatchEngine& operator=(const BatchEngine&) = delete;

  // Takes a request in; nothing runs yet.  An accepted one ends in exactly one OnFinish of its
  // listener, which must outlive that call.  InvalidArgument, and no call, for parameters out of
  // range or a prompt that leaves no room in the context; ResourceExhausted for a request that no
  // KV pool of this size could hold.
  Result<RequestId> Submit(GenerationRequest request, RequestListener& listener);
  // Ends a request that has not finished, with what there is (FinishReason::kCancelled).
  // Must not be called by a listener.
  void Cancel(RequestId id);

  // What the last Step() did and how long its parts took.
  struct StepTimes {
    int64_t rows = 0;       // 0: nothing could run
    int64_t sequences = 0;  // of these rows
    double forward_seconds = 0;
    double choose_seconds = 0;       // all threads together choosing tokens
    double choose_work_seconds = 0;  // the sum of what each of them worked meanwhile
  };
  const StepTimes& last_step() const { return times_; }

  // Admits what there is room for, refuses what waited too long for it (ResourceExhausted), runs
  // one step and tells the listeners.  Cancelled when the context was asked to stop: all requests
  // are as they were, and the next call repeats the step.  Any other failure of a step ends the
  // requests that were in it, and only those.
  Status Step();

  // No request is waiting or running.
  bool idle() const { return scheduler_.idle(); }
  int64_t num_waiting() const { return scheduler_.num_waiting(); }
  int64_t num_running() const { return scheduler_.num_running(); }
  int64_t max_sequences() const { return scheduler_.limits().max_num_seqs; }

 private:
  struct Waiting {
    RequestId id;
    GenerationRequest request;
    RequestListener* listener;
  };
  struct Running {
    RequestId id;
    std::unique_ptr<SequenceRun> run;
  };

  RequestFacts FactsOf(RequestId id, const GenerationRequest& request) const;
  StepBudget Budget() const;
  Running& RunningOf(RequestId id);
  // False when a request ended by it, so that another plan is due.
  bool CarryOut();
  void CarryOutRefusal(const Refusal& refusal);
  void CarryOutPreemption(const Preemption& preemption);
  void CarryOutAdmission(RequestId id);
  void TellWhoIsPaused();
  void GatherBatch();
  Status Forward();
  void ChooseTokens();
  void Advance();
  void DeliverFinished();

  ModelInstance& model_;
  Scheduler scheduler_;
  RequestId next_id_ = 1;
  std::vector<Waiting> waiting_;  // ids ascending
  std::vector<Running> running_;  // admitted, also when set aside since; ids ascending

  // The step in preparation; kept for their capacity.
  StepPlan plan_;
  std::vector<BatchRow> rows_;
  std::vector<SequenceSlice> slices_;
  std::vector<int32_t> logit_rows_;
  std::vector<float> logits_;  // [admitted at most, vocab_size]
  struct Choice {
    SequenceRun* run;
    std::span<float> logits;
  };
  std::vector<Choice> choices_;
  std::vector<ChooserMemory> choosers_;  // [threads of the context]
  std::vector<double> choosing_;         // [threads of the context] seconds
  StepTimes times_;
};

}  // namespace deepinfer
