#include "engine/sequence_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deepinfer {
namespace {

// Room for tokens made at the start, so that answers of usual length never grow their result.
constexpr int64_t kMaxReservedTokens = 1 << 14;

SequenceState StateFor(ModelInstance& model, GenerationRequest& request) {
  SequenceState state = request.state ? *std::move(request.state) : model.NewSequence();
  request.state.reset();
  BeginPrompt(state, request.prefill, static_cast<int64_t>(request.prompt.size()));
  return state;
}

}  // namespace

SequenceRun::SequenceRun(ModelInstance& model, GenerationRequest request, RequestListener& listener)
    : model_(model),
      request_(std::move(request)),
      listener_(listener),
      state_(StateFor(model, request_)),
      counts_(model.config().vocab_size),
      text_(*model.tokenizer(), LimitsOf(model, request_)) {
  result_.seed = request_.sampling.seed ? *request_.sampling.seed : DrawSeed();
  result_.prompt_len = static_cast<int64_t>(request_.prompt.size());
  result_.reused_len = state_->len();
  result_.num_top = static_cast<int>(
      std::clamp<int64_t>(request_.sampling.num_logprobs, 0, model.config().vocab_size));
  const int64_t tokens = std::min(LimitsOf(model, request_).max_tokens, kMaxReservedTokens);
  result_.tokens.reserve(static_cast<size_t>(tokens));
  if (request_.sampling.num_logprobs >= 0) {
    result_.logprobs.reserve(static_cast<size_t>(tokens));
    result_.top.reserve(static_cast<size_t>(tokens * result_.num_top));
  }
  for (const BatchRow& row : request_.prompt) {
    if (row.kind == RowKind::kText) counts_.AddPrompt(row.token);
  }
  rows_ = std::move(request_.prompt);
}

std::span<const BatchRow> SequenceRun::Rows(int64_t count) const {
  if (prompt_left() == 0) return {&next_row_, 1};
  return std::span(rows_).subspan(static_cast<size_t>(state_->len()), static_cast<size_t>(count));
}

SequenceSlice SequenceRun::Slice(int64_t count) {
  // What is left of the prompt after these rows, as far as the next step can reach.
  const int64_t left = std::clamp<int64_t>(prompt_left() - count, 0, kMaxBatchRows);
  return {
      .state = &*state_,
      .num_rows = count,
      .prefill = request_.prefill,
      .upcoming = std::span(rows_).subspan(
          left > 0 ? static_cast<size_t>(state_->len() + count) : 0, static_cast<size_t>(left))};
}

void SequenceRun::StepBegins() {
  if (start_ != Clock::time_point{}) return;
  start_ = Clock::now();
  listener_.OnStart();
}

void SequenceRun::Advance(bool chosen) {
  // The step is committed: the state already covers its rows.  Prompt rows that run a second time
  // are no progress.
  const bool prompt_rows = result_.tokens.empty();
  if (prompt_rows && state_->len() > prefill_shown_) {
    prefill_shown_ = state_->len();
    listener_.OnPrefill(prefill_shown_, result_.prompt_len);
  }
  if (!chosen) return;
  const Clock::time_point now = Clock::now();
  if (prompt_rows) {
    prefilled_ = now;
    result_.prefill_seconds = std::chrono::duration<double>(now - start_).count();
  }
  Status status = TakeToken();
  result_.decode_seconds = std::chrono::duration<double>(Clock::now() - prefilled_).count();
  if (!status.ok()) failed_ = std::move(status);
}

void SequenceRun::Choose(std::span<float> logits, ChooserMemory& memory) {
  const bool with_logprobs = request_.sampling.num_logprobs >= 0;
  std::span<float> adjusted = logits;
  if (with_logprobs) {  // they are those of the untouched logits
    adjusted = memory.adjusted;
    std::copy(logits.begin(), logits.end(), adjusted.begin());
  }
  counts_.Apply(request_.sampling, adjusted);
  chosen_ = memory.sampler.Choose(adjusted, request_.sampling,
                                  {.seed = result_.seed, .choice = 0, .position = state_->len()});
  if (with_logprobs && chosen_) NoteLogprobs(logits, *chosen_, memory.sampler);
}

Status SequenceRun::TakeToken() {
  if (!chosen_) {
    return CorruptData(fmt::format(
        "position {}: found no logit that is a number, expected some: the weights may be damaged",
        state_->len()));
  }
  const int32_t token = *chosen_;
  counts_.AddOutput(token);
  result_.tokens.push_back(token);
  next_row_ = {.token = token, .pos = state_->len()};
  ChosenToken told{.token = token};
  if (request_.sampling.num_logprobs >= 0) {
    told.logprob = result_.logprobs.back();
    told.top = std::span(result_.top).last(static_cast<size_t>(result_.num_top));
  }
  listener_.OnToken(told);
  if (request_.make_text) return ShowText(text_.Add(token));
  text_.Pass(token);
  return Status::Ok();
}

void SequenceRun::NoteLogprobs(std::span<const float> logits, int32_t token, Sampler& sampler) {
  const size_t first = result_.top.size();
  result_.top.resize(first + static_cast<size_t>(result_.num_top));
  result_.logprobs.push_back(
      sampler.Logprobs(logits, token, std::span(result_.top).subspan(first)));
}

Status SequenceRun::ShowText(std::string_view text) {
  return text.empty() ? Status::Ok() : listener_.OnText(text);
}

Status SequenceRun::SetAside(SetAsideKind kind) {
  CHECK(!finished());
  CHECK(!is_set_aside());
  if (kind == SetAsideKind::kWhole) {
    ASSIGN_OR_RETURN(kept_, model_.set_aside().Keep(*state_, model_.identity()));
  } else if (!CanRecompute()) {
    return Unsupported(
        "found a sequence that began behind a bounded replay, expected one whose tokens alone give "
        "the same bits again; set its whole state aside");
  }
  kept_replay_ = state_->replay;
  state_.reset();
  ++result_.num_preemptions;
  return Status::Ok();
}

Status SequenceRun::Resume() {
  CHECK(is_set_aside());
  if (kept_) {
    ASSIGN_OR_RETURN(state_, model_.RestoreSequence(*kept_));
    kept_.reset();
    return Status::Ok();
  }
  // The rows of the answer follow the prompt's in the same Forwards: at and after prompt_len every
  // row goes through all layers, whatever stands beside it.  The last token is among them, and its
  // logits give the next one.
  state_ = model_.NewSequence();
  BeginPrompt(*state_, request_.prefill, result_.prompt_len);
  state_->replay = kept_replay_;
  const auto known = static_cast<int64_t>(rows_.size()) - result_.prompt_len;
  for (size_t i = static_cast<size_t>(known); i < result_.tokens.size(); ++i) {
    rows_.push_back(
        {.token = result_.tokens[i], .pos = result_.prompt_len + static_cast<int64_t>(i)});
  }
  return Status::Ok();
}

void SequenceRun::Cancel() {
  if (finished()) return;
  Status status = ShowText(text_.End(FinishReason::kCancelled));
  if (!status.ok()) failed_ = std::move(status);
}

void SequenceRun::Deliver() {
  CHECK(finished());
  std::optional<SequenceState> state = std::exchange(state_, std::nullopt);
  kept_.reset();
  if (!failed_.ok()) {
    listener_.OnFinish(std::move(failed_));
    return;
  }
  result_.text = std::move(text_.text());
  result_.finish_reason = text_.finish_reason();
  result_.stop_string = text_.stop_string();
  if (request_.keep_state) result_.state = std::move(state);
  listener_.OnFinish(std::move(result_));
}

}  // namespace deepinfer
