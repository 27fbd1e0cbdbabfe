// One admitted request: its sequence state, its penalties, its text, and how far it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "engine/answer_text.h"
#include "engine/model_instance.h"
#include "engine/request.h"
#include "engine/step_plan.h"
#include "sampling/penalties.h"
#include "sampling/sampler.h"

namespace deepinfer {

// Work memory for choosing tokens, one for each thread that does.
struct ChooserMemory {
  explicit ChooserMemory(int64_t vocab_size)
      : sampler(vocab_size), adjusted(static_cast<size_t>(vocab_size)) {}

  Sampler sampler;
  std::vector<float> adjusted;  // [vocab_size] logits after penalties
};

// Allocates what it needs when it is made; a step only fills it (a result longer than expected may
// grow).  Used by the step thread alone, but for Choose.  Model and listener must outlive it.
class SequenceRun {
 public:
  // The request has been checked.
  SequenceRun(ModelInstance& model, GenerationRequest request, RequestListener& listener);
  SequenceRun(const SequenceRun&) = delete;
  SequenceRun& operator=(const SequenceRun&) = delete;

  StepNeed need() const {
    return {.prompt_left = prompt_left(), .chunk = request_.chunk, .paused = !listener_.HasRoom()};
  }
  // The next `count` rows, and the same as a slice of a batch.
  std::span<const BatchRow> Rows(int64_t count) const;
  SequenceSlice Slice(int64_t count);
  // Whether a step of `count` rows ends in a token.
  bool WantsLogits(int64_t count) const { return count >= prompt_left(); }

  // After a committed step that ends in a token: chooses it.  logits: [vocab_size] of the last row,
  // overwritten.  Any thread may call it, also while other runs choose.
  void Choose(std::span<float> logits, ChooserMemory& memory);
  // What a committed step means: prompt progress, or, with `chosen`, the token that was chosen and
  // its text.  Afterwards the run may be finished().
  void Advance(bool chosen);
  void StepBegins();

  // Ends the run from outside.
  void Cancel();
  void Fail(Status status) { failed_ = std::move(status); }
  bool finished() const { return !failed_.ok() || text_.finished(); }
  // Hands the result, or the error, to the listener.  Precondition: finished().  Once.
  void Deliver();

 private:
  using Clock = std::chrono::steady_clock;

  int64_t prompt_left() const { return std::max<int64_t>(0, result_.prompt_len - state_.len()); }
  Status TakeToken();
  void NoteLogprobs(std::span<const float> logits, int32_t token, Sampler& sampler);
  Status ShowText(std::string_view text);

  GenerationRequest request_;
  RequestListener& listener_;
  SequenceState state_;
  TokenCounts counts_;
  AnswerText text_;
  std::optional<int32_t> chosen_;  // by the last Choose; nothing: no logit was a number
  BatchRow next_row_;              // the last token, while decoding
  Status failed_;
  Clock::time_point start_{};
  Clock::time_point prefilled_{};
  GenerationResult result_;
};

}  // namespace deepinfer
