// Test support: runs of requests stepped by hand, as the engine does it, with the logits of every
// token kept.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/model_instance.h"
#include "engine/sequence_run.h"

namespace deepinfer {

class KeepingListener : public RequestListener {
 public:
  Status OnText(std::string_view piece) override {
    text += piece;
    return Status::Ok();
  }
  void OnPrefill(int64_t done, int64_t /*total*/) override { prefill.push_back(done); }
  void OnFinish(Result<GenerationResult> finished) override { result = std::move(finished); }

  std::string text;
  std::vector<int64_t> prefill;
  Result<GenerationResult> result = Internal("not finished");
};

// One request with the logits of each of its tokens.
struct Subject {
  Subject(ModelInstance& model, GenerationRequest request)
      : run(model, std::move(request), listener) {}

  KeepingListener listener;
  SequenceRun run;
  std::vector<float> logits;  // [tokens, vocab_size]
};

// Steps of several runs in one batch, as the engine makes them.
class Stepper {
 public:
  explicit Stepper(ModelInstance& model) : model_(model), memory_(model.config().vocab_size) {}

  // Of the next step: as many prompt rows as the request's chunk allows, or one to decode.
  static int64_t RowsOf(const SequenceRun& run) {
    const StepNeed need = run.need();
    const int64_t count = std::max<int64_t>(1, need.prompt_left);
    return need.chunk > 0 ? std::min(count, need.chunk) : count;
  }

  Status Step(std::span<Subject* const> subjects) {
    rows_.clear();
    slices_.clear();
    wanted_.clear();
    for (Subject* subject : subjects) Gather(subject->run);
    const auto vocab = static_cast<size_t>(model_.config().vocab_size);
    std::vector<float> logits(wanted_.size() * vocab);
    RETURN_IF_ERROR(model_.transformer().Forward(
        model_.context(), {.rows = rows_, .slices = slices_, .logit_rows = wanted_},
        {.logits = logits.data()}));
    int32_t row = 0;
    size_t next = 0;
    for (size_t i = 0; i < subjects.size(); ++i) {
      row += static_cast<int32_t>(slices_[i].num_rows);
      std::span<float> own;
      if (next < wanted_.size() && wanted_[next] == row - 1) {
        own = std::span(logits).subspan(next++ * vocab, vocab);
        subjects[i]->logits.insert(subjects[i]->logits.end(), own.begin(), own.end());
      }
      if (!own.empty()) subjects[i]->run.Choose(own, memory_);
      subjects[i]->run.Advance(!own.empty());
    }
    return Status::Ok();
  }

 private:
  void Gather(SequenceRun& run) {
    const int64_t count = RowsOf(run);
    const std::span<const BatchRow> given = run.Rows(count);
    rows_.insert(rows_.end(), given.begin(), given.end());
    slices_.push_back(run.Slice(count));
    if (run.WantsLogits(count)) wanted_.push_back(static_cast<int32_t>(rows_.size()) - 1);
  }

  ModelInstance& model_;
  ChooserMemory memory_;
  std::vector<BatchRow> rows_;
  std::vector<SequenceSlice> slices_;
  std::vector<int32_t> wanted_;
};

}  // namespace deepinfer
