// Many requests on one model: each step is one Forward over rows of several of them.
//
// The result of a request is the same bits whatever runs beside it, in which order requests came,
// and how their prompts were cut: rows do not see each other's sequences (model/transformer.h), and
// a token depends on its own logits, parameters, seed and position only (sampling/sampler.h).
//
//   Submit -> waiting -> (room) admitted, memory allocated -> steps -> finished -> OnFinish
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/model_instance.h"
#include "engine/request.h"
#include "engine/sequence_run.h"
#include "engine/step_plan.h"

namespace deepinfer {

struct BatchLimits {
  int64_t max_sequences = 0;  // in flight at a time; 0: all that the model has KV memory for
  int64_t max_rows = 0;       // of one step; 0: all that the model has memory for
};

// What Submit demands of a request; callable from any thread.
Status CheckRequest(const ModelInstance& model, const GenerationRequest& request);

// Used by the step thread alone.  The model must outlive it and have a tokenizer.
class BatchEngine {
 public:
  using RequestId = int64_t;

  explicit BatchEngine(ModelInstance& model, const BatchLimits& limits = {});
  BatchEngine(const BatchEngine&) = delete;
  BatchEngine& operator=(const BatchEngine&) = delete;

  // Takes a request in; nothing runs yet.  An accepted one ends in exactly one OnFinish of its
  // listener, which must outlive that call.  InvalidArgument, and no call, for parameters out of
  // range or a prompt that leaves no room in the context.
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

  // Admits what there is room for, runs one step and tells the listeners.  Cancelled when the
  // context was asked to stop: all requests are as they were, and the next call repeats the step.
  // Any other failure of a step ends the requests that were in it, and only those.
  Status Step();

  // No request is waiting or running.
  bool idle() const { return waiting_.empty() && running_.empty(); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t max_sequences() const { return limits_.max_sequences; }

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

  void Admit();
  void GatherBatch();
  Status Forward();
  void ChooseTokens();
  void Advance();
  void DeliverFinished();

  ModelInstance& model_;
  BatchLimits limits_;
  RequestId next_id_ = 1;
  std::deque<Waiting> waiting_;   // in order of arrival
  std::vector<Running> running_;  // in order of admission

  // The step in preparation; kept for their capacity.
  std::vector<StepNeed> needs_;
  std::vector<StepShare> plan_;
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
