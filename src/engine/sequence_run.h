// One admitted request: its sequence state, its penalties, its text, and how far it is.
//
// Between two steps it can be set aside, so that others get its memory, and resumed: everything
// that it gives afterwards has the bits of never having been interrupted (docs/design/0006).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/answer_text.h"
#include "engine/model_instance.h"
#include "engine/request.h"
#include "engine/reuse.h"
#include "kv/set_aside.h"
#include "sampling/penalties.h"
#include "sampling/sampler.h"

namespace deepinfer {

// What a sequence that is not set aside could put into a step.
struct StepNeed {
  int64_t prompt_left = 0;  // prompt rows that are not computed; 0: it decodes, one row a step
  int64_t chunk = 0;        // most prompt rows in one step; 0: as many as fit
};

// Work memory for choosing tokens, one for each thread that does.
struct ChooserMemory {
  explicit ChooserMemory(int64_t vocab_size)
      : sampler(vocab_size), adjusted(static_cast<size_t>(vocab_size)) {}

  Sampler sampler;
  std::vector<float> adjusted;  // [vocab_size] logits after penalties
};

// What is kept of a sequence that is set aside.
enum class SetAsideKind : uint8_t {
  kWhole,   // the bytes of its state, in the model's SetAsideMemory; resuming copies them back
  kTokens,  // its tokens alone; resuming computes their rows again
};

// Allocates what it needs when it is made or resumed; a step only fills it (a result longer than
// expected may grow).  Used by the step thread alone, but for Choose.  Model and listener must
// outlive it.
class SequenceRun {
 public:
  // The request has been checked.
  SequenceRun(ModelInstance& model, GenerationRequest request, RequestListener& listener);
  SequenceRun(const SequenceRun&) = delete;
  SequenceRun& operator=(const SequenceRun&) = delete;

  StepNeed need() const { return {.prompt_left = prompt_left(), .chunk = request_.chunk}; }
  // Whether its listener has no room for a token: it sits the step out.
  bool paused() const { return !listener_.HasRoom(); }
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

  // ---- preemption: between steps, unless finished() ----
  // Gives the state's memory back, its KV blocks above all.  With an error everything is as it was:
  // ResourceExhausted when SetAsideMemory has no room for the whole state, Unsupported when the
  // tokens alone cannot bring the same bits back (CanRecompute).
  Status SetAside(SetAsideKind kind);
  // Makes it runnable again.  ResourceExhausted, and still set aside, when the pool has too few
  // blocks for a whole state; one of tokens alone takes its blocks as its rows are computed.
  Status Resume();
  bool is_set_aside() const { return !state_; }
  // False for a sequence that began behind a bounded replay: its bits depend on blocks of another.
  // Precondition: not set aside.
  bool CanRecompute() const { return HasColdBits(*state_); }
  // What a scheduler weighs.  Of a running sequence: the blocks that setting it aside frees, and
  // those that a step of so many rows takes.  Of one set aside: those that Resume() takes.
  int64_t BlocksToFree() const { return state_->num_exclusive_blocks(); }
  int64_t BlocksToReserve(int64_t rows) const { return state_->BlocksToReserve(rows); }
  int64_t BlocksToResume() const { return kept_ ? kept_->num_blocks() : 0; }

  // Ends the run from outside.
  void Cancel();
  void Fail(Status status) { failed_ = std::move(status); }
  bool finished() const { return !failed_.ok() || text_.finished(); }
  // Hands the result, or the error, to the listener, and gives back what the run holds; there is no
  // state in the result of one that was set aside.  Precondition: finished().  Once.
  void Deliver();

 private:
  using Clock = std::chrono::steady_clock;

  // Rows of known tokens that are not computed, the last token of a decoding sequence aside.
  int64_t prompt_left() const {
    return std::max<int64_t>(0, static_cast<int64_t>(rows_.size()) - state_->len());
  }
  Status TakeToken();
  void NoteLogprobs(std::span<const float> logits, int32_t token, Sampler& sampler);
  Status ShowText(std::string_view text);

  ModelInstance& model_;
  GenerationRequest request_;
  RequestListener& listener_;
  // Set aside: none, with its bytes or its replay record kept.
  std::optional<SequenceState> state_;
  std::optional<SetAsideState> kept_;
  ReplayRecord kept_replay_;
  // The prompt; after a resumption from tokens, the answer so far too.
  std::vector<BatchRow> rows_;
  TokenCounts counts_;
  AnswerText text_;
  std::optional<int32_t> chosen_;  // by the last Choose; nothing: no logit was a number
  BatchRow next_row_;              // the last token, while decoding
  int64_t prefill_shown_ = 0;      // prompt rows that the listener knows of
  Status failed_;
  Clock::time_point start_{};
  Clock::time_point prefilled_{};
  GenerationResult result_;
};

}  // namespace deepinfer
