#include "apps/generate/jsonl_run.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <memory>

#include "apps/generate/jsonl_request.h"
#include "apps/generate/result_json.h"
#include "apps/interrupt.h"

namespace deepinfer {
namespace {

// Lines read ahead for each sequence in flight: a long answer holds back the finished ones behind
// it, whose place may meanwhile be taken by later lines.
constexpr int64_t kLinesPerSequence = 8;

// One line of the source: its result is kept until those before it are written.
class Slot : public RequestListener {
 public:
  Slot(const Tokenizer& tokenizer, JsonlSummary& summary, int64_t line)
      : tokenizer_(tokenizer), summary_(summary), line_(line) {}

  void OnFinish(Result<GenerationResult> result) override {
    if (!result.ok()) return Fail(result.status());
    summary_.prompt_tokens += result->prompt_len;
    summary_.output_tokens += std::ssize(result->tokens);
    if (result->finish_reason == FinishReason::kCancelled) ++summary_.cancelled;
    json_ = ResultJson(*result, tokenizer_, id);
  }

  void Fail(const Status& status) {
    ++summary_.failed;
    json_ = ErrorJson(status, id, line_);
  }

  bool done() const { return !json_.empty(); }
  const std::string& json() const { return json_; }

  std::string id = "null";             // JSON text
  BatchEngine::RequestId request = 0;  // 0: never got into the engine

 private:
  const Tokenizer& tokenizer_;
  JsonlSummary& summary_;
  int64_t line_;
  std::string json_;
};

class JsonlRun {
 public:
  JsonlRun(ModelInstance& model, LineSource& source, const JsonlOptions& options,
           const LineSink& sink)
      : model_(model),
        source_(source),
        options_(options),
        sink_(sink),
        engine_(model, options.limits) {}

  Result<JsonlSummary> Finish() {
    const auto start = std::chrono::steady_clock::now();
    Status status = Loop();
    if (!status.ok() && status.code() != ErrorCode::kCancelled) return status;
    if (!status.ok()) RETURN_IF_ERROR(CancelAll());
    summary_.complete = ended_;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    summary_.seconds = passed.count();
    return summary_;
  }

 private:
  Status Loop() {
    while (!ended_ || !slots_.empty()) {
      RETURN_IF_ERROR(ReadAhead());
      RETURN_IF_ERROR(WriteDone());
      RETURN_IF_ERROR(engine_.Step());
      RETURN_IF_ERROR(WriteDone());
    }
    return Status::Ok();
  }

  // Waits for input only when there is nothing else to do.
  Status ReadAhead() {
    const auto most = static_cast<size_t>(engine_.max_sequences() * kLinesPerSequence);
    while (!ended_ && slots_.size() < most && (engine_.idle() || source_.Ready())) {
      ASSIGN_OR_RETURN(std::optional<SourceLine> line, source_.Next());
      if (!line) {
        ended_ = true;
        break;
      }
      if (line->text.find_first_not_of(" \t") == std::string::npos) continue;
      slots_.push_back(std::make_unique<Slot>(*model_.tokenizer(), summary_, line->number));
      Status status = Take(*line, *slots_.back());
      if (!status.ok()) slots_.back()->Fail(status);
      if (slots_.front()->done()) return Status::Ok();  // to be written before more is waited for
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
    ASSIGN_OR_RETURN(GenerationRequest built, BuildRequest(model_, std::move(request.source),
                                                           request.options, options_.defaults));
    ASSIGN_OR_RETURN(slot.request, engine_.Submit(std::move(built), slot));
    return Status::Ok();
  }

  Status WriteDone() {
    while (!slots_.empty() && slots_.front()->done()) {
      RETURN_IF_ERROR(sink_(slots_.front()->json()));
      ++summary_.lines;
      slots_.pop_front();
    }
    return Status::Ok();
  }

  Status CancelAll() {
    for (const std::unique_ptr<Slot>& slot : slots_) {
      if (!slot->done()) engine_.Cancel(slot->request);
    }
    return WriteDone();
  }

  ModelInstance& model_;
  LineSource& source_;
  const JsonlOptions& options_;
  const LineSink& sink_;
  JsonlSummary summary_;
  bool ended_ = false;                       // the source
  std::deque<std::unique_ptr<Slot>> slots_;  // of lines whose result is not written
  BatchEngine engine_;
};

}  // namespace

Result<JsonlSummary> RunJsonl(ModelInstance& model, LineSource& source, const JsonlOptions& options,
                              const LineSink& sink) {
  return JsonlRun(model, source, options, sink).Finish();
}

}  // namespace deepinfer
