#include "bench/engine_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>

namespace deepinfer {
namespace {

using Clock = std::chrono::steady_clock;

double Ms(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// Of one request, by its arrival as planned: what waits to be submitted is waiting too.
struct Timeline {
  Clock::time_point arrival;
  Clock::time_point last_token{};
  double first_token_ms = 0;
  double request_ms = 0;
  std::vector<double> between_ms;
};

// Submits on schedule and takes the times on the engine's callback thread.
class LoadRun {
 public:
  LoadRun(Engine& engine, const EngineLoad& load, const BenchProgress& on_progress)
      : engine_(engine),
        load_(load),
        on_progress_(on_progress),
        requests_(MakeRequests(load, engine.vocab_size())),
        timelines_(requests_.size()) {}

  Status Run() {
    start_ = Clock::now();
    Status status;
    for (size_t i = 0; i < requests_.size() && status.ok(); ++i) {
      AwaitTurn(i);
      status = Submit(i);
    }
    engine_.WaitIdle();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_ended_ == num_submitted_; });
    return status.ok() ? error_ : status;
  }

  double Seconds() const { return Ms(last_end_ - start_) / 1e3; }
  const std::vector<Timeline>& timelines() const { return timelines_; }

 private:
  void AwaitTurn(size_t i) {
    const auto arrival = start_ + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(requests_[i].arrival));
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, arrival, [] { return false; });
    timelines_[i].arrival = arrival;
    if (load_.in_flight == 0) return;
    changed_.wait(lock, [&] { return num_submitted_ - num_ended_ < load_.in_flight; });
    if (load_.rate == 0) timelines_[i].arrival = Clock::now();  // comes when there is room
  }

  Status Submit(size_t i) {
    LoadRequest& request = requests_[i];
    {
      const std::lock_guard lock(mutex_);
      ++num_submitted_;
    }
    const Result<Engine::RequestId> id = engine_.Submit(
        {.prompt = std::move(request.prompt),
         .sampling = {.temperature = load_.temperature, .seed = request.seed},
         .max_tokens = request.output_len,
         .ignore_eos = true},
        {.on_piece = [this, i](const AnswerPiece& piece) { TakePiece(timelines_[i], piece); },
         .on_end = [this, i](const Result<Answer>& answer) { TakeEnd(timelines_[i], answer); }});
    if (id.ok()) return Status::Ok();
    const std::lock_guard lock(mutex_);
    --num_submitted_;
    return id.status();
  }

  // Tokens that come in one piece came together: nothing lies between them.
  static void TakePiece(Timeline& timeline, const AnswerPiece& piece) {
    const Clock::time_point now = Clock::now();
    for (size_t token = 0; token < piece.tokens.size(); ++token) {
      if (timeline.last_token == Clock::time_point{}) {
        timeline.first_token_ms = Ms(now - timeline.arrival);
      } else {
        timeline.between_ms.push_back(Ms(now - timeline.last_token));
      }
      timeline.last_token = now;
    }
  }

  void TakeEnd(Timeline& timeline, const Result<Answer>& answer) {
    timeline.request_ms = Ms(Clock::now() - timeline.arrival);
    const std::lock_guard lock(mutex_);
    if (!answer.ok() && error_.ok()) error_ = answer.status();
    last_end_ = Clock::now();
    ++num_ended_;
    if (on_progress_) on_progress_(num_ended_, load_.requests);
    changed_.notify_all();
  }

  Engine& engine_;
  const EngineLoad& load_;
  const BenchProgress& on_progress_;
  std::vector<LoadRequest> requests_;
  std::vector<Timeline> timelines_;  // each of its request's callbacks
  Clock::time_point start_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  int64_t num_submitted_ = 0;
  int64_t num_ended_ = 0;
  Clock::time_point last_end_;
  Status error_;
};

// The sums of `after` without those of `before`.
EngineStatistics Since(const EngineStatistics& before, EngineStatistics after) {
  after.num_accepted -= before.num_accepted;
  after.num_finished -= before.num_finished;
  after.prompt_tokens -= before.prompt_tokens;
  after.output_tokens -= before.output_tokens;
  after.num_steps -= before.num_steps;
  after.step_seconds -= before.step_seconds;
  after.sampling_seconds -= before.sampling_seconds;
  after.between_seconds -= before.between_seconds;
  after.idle_thread_seconds -= before.idle_thread_seconds;
  after.compute_thread_seconds -= before.compute_thread_seconds;
  for (size_t i = 0; i < after.steps_by_size.size(); ++i) {
    after.steps_by_size[i].num_steps -= before.steps_by_size[i].num_steps;
    after.steps_by_size[i].tokens -= before.steps_by_size[i].tokens;
    after.steps_by_size[i].seconds -= before.steps_by_size[i].seconds;
  }
  return after;
}

Status WarmUp(Engine& engine) {
  ASSIGN_OR_RETURN(AnswerStream stream,
                   engine.Submit({.prompt = {0, 1, 2, 3}, .max_tokens = 2, .ignore_eos = true}));
  RETURN_IF_ERROR(stream.Wait().status());
  engine.WaitIdle();  // for its figures
  return Status::Ok();
}

}  // namespace

Quantiles QuantilesOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  };
  return {.p50 = at(0.5), .p90 = at(0.9), .p99 = at(0.99), .max = values.back()};
}

Result<EngineBenchResult> BenchEngine(Engine& engine, const EngineLoad& load,
                                      const BenchProgress& on_progress) {
  RETURN_IF_ERROR(WarmUp(engine));
  const EngineStatistics before = engine.Statistics();
  LoadRun run(engine, load, on_progress);
  RETURN_IF_ERROR(run.Run());
  EngineBenchResult result{.load = load, .seconds = run.Seconds()};
  result.figures = Since(before, engine.Statistics());
  std::vector<double> first;
  std::vector<double> between;
  std::vector<double> whole;
  for (const Timeline& timeline : run.timelines()) {
    first.push_back(timeline.first_token_ms);
    whole.push_back(timeline.request_ms);
    between.insert(between.end(), timeline.between_ms.begin(), timeline.between_ms.end());
  }
  result.first_token_ms = QuantilesOf(std::move(first));
  result.between_tokens_ms = QuantilesOf(std::move(between));
  result.request_ms = QuantilesOf(std::move(whole));
  result.requests_per_second = static_cast<double>(load.requests) / result.seconds;
  result.prompt_tokens_per_second =
      static_cast<double>(result.figures.prompt_tokens) / result.seconds;
  result.output_tokens_per_second =
      static_cast<double>(result.figures.output_tokens) / result.seconds;
  return result;
}

}  // namespace deepinfer
