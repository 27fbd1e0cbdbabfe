#include "engine/batch_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/check.h"

namespace deepinfer {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Status CheckPrompt(const ModelInstance& model, const std::vector<BatchRow>& prompt) {
  if (prompt.empty()) return InvalidArgument("prompt: found no tokens, expected at least one");
  const auto prompt_len = static_cast<int64_t>(prompt.size());
  if (prompt_len >= model.max_model_len()) {
    return InvalidArgument(
        fmt::format("prompt: found {} tokens, expected fewer than the context of {}", prompt_len,
                    model.max_model_len()));
  }
  for (const BatchRow& row : prompt) {
    if (row.token >= 0 && row.token < model.config().vocab_size) continue;
    return InvalidArgument(fmt::format("prompt: found token {} at position {}, expected 0 to {}",
                                       row.token, row.pos, model.config().vocab_size - 1));
  }
  return Status::Ok();
}

}  // namespace

Status CheckRequest(const ModelInstance& model, const GenerationRequest& request) {
  RETURN_IF_ERROR(request.sampling.Validate(model.config().vocab_size));
  RETURN_IF_ERROR(CheckPrompt(model, request.prompt));
  if (request.prefill.keep < model.config().window_size) {
    return InvalidArgument(
        fmt::format("--yoco-prefill-keep-tokens: found {}, expected at least the window, {}",
                    request.prefill.keep, model.config().window_size));
  }
  if (request.max_tokens < 0) {
    return InvalidArgument(fmt::format("max_tokens: found {}, expected 0 (as many as fit) or more",
                                       request.max_tokens));
  }
  return Status::Ok();
}

BatchEngine::BatchEngine(ModelInstance& model, const BatchLimits& limits)
    : model_(model), limits_(limits) {
  CHECK(model.tokenizer() != nullptr);
  const int64_t planned = model.max_sequences();
  limits_.max_sequences =
      limits.max_sequences > 0 ? std::min(limits.max_sequences, planned) : planned;
  const int64_t most_rows = model.max_batch_rows();
  limits_.max_sequences = std::min(limits_.max_sequences, most_rows);
  // A row for each sequence that decodes: none may starve.
  limits_.max_rows = limits.max_rows > 0 ? std::min(limits.max_rows, most_rows) : most_rows;
  limits_.max_rows = std::max(limits_.max_rows, limits_.max_sequences);
  rows_.reserve(static_cast<size_t>(limits_.max_rows));
  for (int slot = 0; slot < model.context().num_threads(); ++slot) {
    choosers_.emplace_back(model.config().vocab_size);
  }
  choosing_.resize(choosers_.size());
}

Result<BatchEngine::RequestId> BatchEngine::Submit(GenerationRequest request,
                                                   RequestListener& listener) {
  RETURN_IF_ERROR(CheckRequest(model_, request));
  if (request.state) CHECK_LT(request.state->len(), static_cast<int64_t>(request.prompt.size()));
  const RequestId id = next_id_++;
  waiting_.push_back({.id = id, .request = std::move(request), .listener = &listener});
  return id;
}

void BatchEngine::Cancel(RequestId id) {
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& waiting) { return waiting.id == id; });
  if (waits != waiting_.end()) {
    SequenceRun run(model_, std::move(waits->request), *waits->listener);
    waiting_.erase(waits);
    run.Cancel();
    run.Deliver();
    return;
  }
  for (const Running& running : running_) {
    if (running.id == id) running.run->Cancel();
  }
  DeliverFinished();
}

Status BatchEngine::Step() {
  times_ = {};
  Admit();
  if (running_.empty()) return Status::Ok();
  GatherBatch();
  if (plan_.empty()) return Status::Ok();
  times_ = {.rows = std::ssize(rows_), .sequences = std::ssize(plan_)};
  Status status = Forward();
  if (status.ok()) {
    ChooseTokens();
    Advance();
  } else if (status.code() == ErrorCode::kCancelled) {
    return status;
  } else {
    for (const StepShare& share : plan_) running_[share.sequence].run->Fail(status);
  }
  DeliverFinished();
  return Status::Ok();
}

void BatchEngine::Admit() {
  while (!waiting_.empty() && num_running() < limits_.max_sequences) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    running_.push_back(
        {.id = next.id,
         .run = std::make_unique<SequenceRun>(model_, std::move(next.request), *next.listener)});
  }
  const size_t needed = running_.size() * static_cast<size_t>(model_.config().vocab_size);
  if (logits_.size() < needed) logits_.resize(needed);
}

void BatchEngine::GatherBatch() {
  needs_.clear();
  for (const Running& running : running_) needs_.push_back(running.run->need());
  PlanStep(needs_, limits_.max_rows, plan_);
  rows_.clear();
  slices_.clear();
  logit_rows_.clear();
  choices_.clear();
  const auto vocab = static_cast<size_t>(model_.config().vocab_size);
  for (const StepShare& share : plan_) {
    SequenceRun& run = *running_[share.sequence].run;
    run.StepBegins();
    const std::span<const BatchRow> rows = run.Rows(share.rows);
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    slices_.push_back(run.Slice(share.rows));
    if (!run.WantsLogits(share.rows)) continue;
    choices_.push_back(
        {.run = &run, .logits = std::span(logits_).subspan(choices_.size() * vocab, vocab)});
    logit_rows_.push_back(static_cast<int32_t>(rows_.size()) - 1);
  }
}

Status BatchEngine::Forward() {
  const Clock::time_point start = Clock::now();
  Status status = model_.transformer().Forward(
      model_.context(), {.rows = rows_, .slices = slices_, .logit_rows = logit_rows_},
      {.logits = logits_.data(), .main_hidden = nullptr});
  times_.forward_seconds = SecondsSince(start);
  return status;
}

// One sequence a thread: a choice depends on its own logits only.
void BatchEngine::ChooseTokens() {
  const Clock::time_point start = Clock::now();
  std::fill(choosing_.begin(), choosing_.end(), 0.0);
  model_.context().ParallelForAll(std::ssize(choices_), 1,
                                  [&](int64_t begin, int64_t end, int slot) {
                                    const Clock::time_point began = Clock::now();
                                    const auto own = static_cast<size_t>(slot);
                                    for (int64_t i = begin; i < end; ++i) {
                                      const Choice& choice = choices_[static_cast<size_t>(i)];
                                      choice.run->Choose(choice.logits, choosers_[own]);
                                    }
                                    choosing_[own] += SecondsSince(began);
                                  });
  times_.choose_seconds = SecondsSince(start);
  times_.choose_work_seconds = std::accumulate(choosing_.begin(), choosing_.end(), 0.0);
}

void BatchEngine::Advance() {
  size_t next = 0;  // of choices_
  for (const StepShare& share : plan_) {
    SequenceRun* run = running_[share.sequence].run.get();
    const bool chosen = next < choices_.size() && choices_[next].run == run;
    run->Advance(chosen);
    if (chosen) ++next;
  }
}

void BatchEngine::DeliverFinished() {
  // Taken out first: a listener may submit the next request.
  std::vector<Running> finished;
  for (Running& running : running_) {
    if (running.run->finished()) finished.push_back(std::move(running));
  }
  std::erase_if(running_, [](const Running& running) { return running.run == nullptr; });
  for (const Running& done : finished) done.run->Deliver();
}

}  // namespace deepinfer
