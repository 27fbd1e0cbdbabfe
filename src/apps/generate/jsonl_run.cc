#include "apps/generate/jsonl_run.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "apps/generate/jsonl_request.h"
#include "apps/generate/result_json.h"
#include "apps/interrupt.h"

namespace deepinfer {
namespace {

// Lines read ahead for each sequence in flight: a long answer holds back the finished ones behind
// it, whose place may meanwhile be taken by later lines.
constexpr int64_t kLinesPerSequence = 8;

// How often a wait looks whether Ctrl-C was pressed and a line has come.
constexpr std::chrono::milliseconds kPoll(20);

// One line of the source: its result is kept until those before it are written.
struct Slot {
  int64_t line = 0;
  std::string id = "null";        // JSON text
  Engine::RequestId request = 0;  // 0: never got into the engine
  std::optional<Result<Answer>> result;
};

class JsonlRun {
 public:
  JsonlRun(Engine& engine, LineSource& source, const JsonlOptions& options, const LineSink& sink)
      : engine_(engine), source_(source), options_(options), sink_(sink) {}
  JsonlRun(const JsonlRun&) = delete;
  JsonlRun& operator=(const JsonlRun&) = delete;
  // Callbacks refer to the slots: none may come later.
  ~JsonlRun() {
    CancelAll();
    AwaitNoneRunning();
  }

  Result<JsonlSummary> Finish() {
    const Clock::time_point start = Clock::now();
    Status status = Loop();
    if (!status.ok() && status.code() != ErrorCode::kCancelled) return status;
    if (!status.ok()) {
      CancelAll();
      AwaitNoneRunning();
      RETURN_IF_ERROR(WriteDone());
    }
    summary_.complete = ended_;
    summary_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return summary_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Status Loop() {
    while (!ended_ || !slots_.empty()) {
      if (Interrupted()) return Cancelled("stopped by Ctrl-C");
      RETURN_IF_ERROR(ReadAhead());
      RETURN_IF_ERROR(WriteDone());
      if (!slots_.empty()) AwaitFront();
    }
    return Status::Ok();
  }

  // Waits for input only when there is nothing else to do.
  Status ReadAhead() {
    const auto most = static_cast<size_t>(options_.engine.max_sequences * kLinesPerSequence);
    while (!ended_ && slots_.size() < most && (slots_.empty() || source_.Ready())) {
      ASSIGN_OR_RETURN(std::optional<SourceLine> line, source_.Next());
      if (!line) {
        ended_ = true;
        break;
      }
      if (line->text.find_first_not_of(" \t") == std::string::npos) continue;
      slots_.push_back(std::make_unique<Slot>());
      slots_.back()->line = line->number;
      const Status status = Take(*line, *slots_.back());
      if (!status.ok()) slots_.back()->result = status;
      if (FrontIsDone()) return Status::Ok();  // to be written before more is waited for
    }
    return Status::Ok();
  }

  Status Take(const SourceLine& line, Slot& slot) {
    if (line.cut) {
      return InvalidArgument(
          fmt::format("found a line of more than {} bytes, expected a shorter one", kMaxLineBytes));
    }
    JsonlRequest request;
    const Status parsed = ParseJsonlRequest(line.text, request);
    slot.id = request.id;
    RETURN_IF_ERROR(parsed);
    // A system text among the flags is for prompts; messages bring their own.
    RequestOptions flags = options_.flags;
    if (request.source.messages) flags.system.reset();
    request.options.FillFrom(flags);
    ASSIGN_OR_RETURN(Request built,
                     BuildRequest(engine_, std::move(request.source), request.options));
    ChangeRunning(1);
    Result<Engine::RequestId> id =
        engine_.Submit(std::move(built), {.on_end = [this, &slot](Result<Answer> answer) {
                         const std::lock_guard lock(mutex_);
                         slot.result = std::move(answer);
                         --num_running_;
                         changed_.notify_one();
                       }});
    if (!id.ok()) ChangeRunning(-1);
    ASSIGN_OR_RETURN(slot.request, std::move(id));
    return Status::Ok();
  }

  Status WriteDone() {
    while (!slots_.empty() && FrontIsDone()) {
      RETURN_IF_ERROR(sink_(LineOf(*slots_.front())));
      ++summary_.lines;
      slots_.pop_front();
    }
    return Status::Ok();
  }

  std::string LineOf(const Slot& slot) {
    const Result<Answer>& answer = *slot.result;
    if (!answer.ok()) {
      ++summary_.failed;
      return ErrorJson(answer.status(), slot.id, slot.line);
    }
    summary_.prompt_tokens += answer->prompt_len;
    summary_.output_tokens += std::ssize(answer->tokens);
    if (answer->finish_reason == FinishReason::kCancelled) ++summary_.cancelled;
    return ResultJson(*answer, engine_, slot.id);
  }

  void CancelAll() {
    for (const std::unique_ptr<Slot>& slot : slots_) engine_.Cancel(slot->request);
  }

  void AwaitNoneRunning() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_running_ == 0; });
  }
  void AwaitFront() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPoll, [&] { return slots_.front()->result.has_value(); });
  }
  bool FrontIsDone() {
    const std::lock_guard lock(mutex_);
    return slots_.front()->result.has_value();
  }
  void ChangeRunning(int64_t by) {
    const std::lock_guard lock(mutex_);
    num_running_ += by;
  }

  Engine& engine_;
  LineSource& source_;
  const JsonlOptions& options_;
  const LineSink& sink_;
  JsonlSummary summary_;
  bool ended_ = false;                       // the source
  std::deque<std::unique_ptr<Slot>> slots_;  // of lines whose result is not written

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t num_running_ = 0;  // guarded by mutex_, as the results of slots
};

}  // namespace

Result<JsonlSummary> RunJsonl(Engine& engine, LineSource& source, const JsonlOptions& options,
                              const LineSink& sink) {
  return JsonlRun(engine, source, options, sink).Finish();
}

}  // namespace deepinfer
