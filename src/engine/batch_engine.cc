#include "engine/batch_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/check.h"
#include "engine/memory_plan.h"
#include "engine/reuse.h"

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

SchedulerLimits SchedulerLimitsOf(const ModelInstance& model, const BatchLimits& limits) {
  const auto at_most = [](int64_t wanted, int64_t most) {
    return wanted > 0 ? std::min(wanted, most) : most;
  };
  return {.max_num_seqs = at_most(limits.max_sequences,
                                  std::min(model.max_sequences(), model.max_batch_rows())),
          .max_num_batched_tokens = at_most(limits.max_rows, model.max_batch_rows()),
          .step_time_budget_us = limits.step_time_budget_ms * 1000,
          .block_tokens = kBlockTokens,
          .num_blocks = model.pool().num_blocks(),
          .state_bytes = SizesOf(model.config(), model.layout()).set_aside,
          .block_bytes = model.layout().block_bytes()};
}

int64_t NowUs() {
  const auto now = Clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
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
    : model_(model), scheduler_(SchedulerLimitsOf(model, limits)) {
  CHECK(model.tokenizer() != nullptr);
  rows_.reserve(static_cast<size_t>(scheduler_.limits().max_num_batched_tokens));
  for (int slot = 0; slot < model.context().num_threads(); ++slot) {
    choosers_.emplace_back(model.config().vocab_size);
  }
  choosing_.resize(choosers_.size());
}

Result<BatchEngine::RequestId> BatchEngine::Submit(GenerationRequest request,
                                                   RequestListener& listener) {
  RETURN_IF_ERROR(CheckRequest(model_, request));
  const RequestId id = next_id_;
  RETURN_IF_ERROR(scheduler_.Add(FactsOf(id, request)));
  ++next_id_;
  waiting_.push_back({.id = id, .request = std::move(request), .listener = &listener});
  return id;
}

RequestFacts BatchEngine::FactsOf(RequestId id, const GenerationRequest& request) const {
  RequestFacts facts{.id = id,
                     .prompt_len = static_cast<int64_t>(request.prompt.size()),
                     .max_tokens = LimitsOf(model_, request).max_tokens,
                     .max_chunk = request.chunk,
                     .priority = request.priority,
                     .arrival_us = NowUs()};
  if (request.state) {
    facts.may_recompute = HasColdBits(*request.state);
    facts.num_cached_tokens = request.state->entries_len();
    facts.computed_len = request.state->len();
  }
  if (request.first_token_within_ms > 0) {
    facts.deadline_us = facts.arrival_us + request.first_token_within_ms * 1000;
  }
  return facts;
}

StepBudget BatchEngine::Budget() const {
  const SetAsideMemory& memory = model_.set_aside();
  return {.free_blocks = model_.pool().num_free(),
          .set_aside_bytes = memory.capacity() - memory.used()};
}

void BatchEngine::Cancel(RequestId id) {
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& waiting) { return waiting.id == id; });
  if (waits != waiting_.end()) {
    SequenceRun run(model_, std::move(waits->request), *waits->listener);
    waiting_.erase(waits);
    scheduler_.Remove(id);
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
  TellWhoIsPaused();
  do {
    scheduler_.Plan(NowUs(), Budget(), plan_);
  } while (!CarryOut());
  if (plan_.rows.empty()) return Status::Ok();
  const int64_t start_us = NowUs();
  GatherBatch();
  times_ = {.rows = std::ssize(rows_), .sequences = std::ssize(plan_.rows)};
  Status status = Forward();
  if (status.ok()) {
    ChooseTokens();
    Advance();
    scheduler_.ObserveStep(plan_.load, static_cast<double>(NowUs() - start_us));
  } else if (status.code() == ErrorCode::kCancelled) {
    return status;
  } else {
    for (const StepRows& rows : plan_.rows) RunningOf(rows.id).run->Fail(status);
  }
  DeliverFinished();
  return Status::Ok();
}

void BatchEngine::TellWhoIsPaused() {
  for (const Running& running : running_) {
    scheduler_.SetPaused(running.id, running.run->paused());
  }
}

bool BatchEngine::CarryOut() {
  for (const Refusal& refusal : plan_.refusals) CarryOutRefusal(refusal);
  for (const Preemption& preemption : plan_.preemptions) CarryOutPreemption(preemption);
  for (const RequestId id : plan_.admissions) CarryOutAdmission(id);
  const auto needed = static_cast<size_t>(num_running() * model_.config().vocab_size);
  if (logits_.size() < needed) logits_.resize(needed);
  const bool ended = !plan_.refusals.empty() ||
                     std::any_of(running_.begin(), running_.end(),
                                 [](const Running& running) { return running.run->finished(); });
  if (ended) DeliverFinished();
  return !ended;
}

void BatchEngine::CarryOutRefusal(const Refusal& refusal) {
  Status status =
      ResourceExhausted(fmt::format("request refused: {}", RefuseReasonText(refusal.reason)));
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& waiting) { return waiting.id == refusal.id; });
  if (waits == waiting_.end()) return RunningOf(refusal.id).run->Fail(std::move(status));
  // Taken out first: a listener may submit the next request.
  RequestListener& listener = *waits->listener;
  waiting_.erase(waits);
  listener.OnFinish(std::move(status));
}

void BatchEngine::CarryOutPreemption(const Preemption& preemption) {
  SequenceRun& run = *RunningOf(preemption.id).run;
  const bool whole = preemption.kind == PreemptKind::kWhole;
  Status status = run.SetAside(whole ? SetAsideKind::kWhole : SetAsideKind::kTokens);
  if (!status.ok() && whole && run.CanRecompute()) {  // more bytes than the scheduler knew of
    scheduler_.NoteStateLost(preemption.id);
    status = run.SetAside(SetAsideKind::kTokens);
  }
  if (!status.ok()) run.Fail(std::move(status));
}

void BatchEngine::CarryOutAdmission(RequestId id) {
  const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& waiting) { return waiting.id == id; });
  if (waits == waiting_.end()) {
    SequenceRun& run = *RunningOf(id).run;
    Status status = run.Resume();
    if (!status.ok()) run.Fail(std::move(status));
    return;
  }
  auto run = std::make_unique<SequenceRun>(model_, std::move(waits->request), *waits->listener);
  waiting_.erase(waits);
  const auto behind = std::find_if(running_.begin(), running_.end(),
                                   [&](const Running& running) { return running.id > id; });
  running_.insert(behind, {.id = id, .run = std::move(run)});
}

BatchEngine::Running& BatchEngine::RunningOf(RequestId id) {
  const auto found =
      std::lower_bound(running_.begin(), running_.end(), id,
                       [](const Running& running, RequestId other) { return running.id < other; });
  CHECK(found != running_.end());
  CHECK_EQ(found->id, id);
  return *found;
}

void BatchEngine::GatherBatch() {
  rows_.clear();
  slices_.clear();
  logit_rows_.clear();
  choices_.clear();
  const auto vocab = static_cast<size_t>(model_.config().vocab_size);
  for (const StepRows& planned : plan_.rows) {
    SequenceRun& run = *RunningOf(planned.id).run;
    run.StepBegins();
    const std::span<const BatchRow> rows = run.Rows(planned.num_tokens);
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    slices_.push_back(run.Slice(planned.num_tokens));
    if (!run.WantsLogits(planned.num_tokens)) continue;
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
  const int64_t now_us = NowUs();
  size_t next = 0;  // of choices_
  for (const StepRows& planned : plan_.rows) {
    SequenceRun* run = RunningOf(planned.id).run.get();
    const bool chosen = next < choices_.size() && choices_[next].run == run;
    run->Advance(chosen);
    scheduler_.Advance(planned.id, planned.num_tokens, now_us);
    if (chosen) ++next;
  }
}

void BatchEngine::DeliverFinished() {
  // Taken out first: a listener may submit the next request.
  std::vector<Running> finished;
  for (Running& running : running_) {
    if (!running.run->finished()) continue;
    scheduler_.Remove(running.id);
    finished.push_back(std::move(running));
  }
  std::erase_if(running_, [](const Running& running) { return running.run == nullptr; });
  for (const Running& done : finished) done.run->Deliver();
}

}  // namespace deepinfer
