#include "engine/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "base/check.h"
#include "engine/stop.h"
#include "sampling/penalties.h"
#include "tokenizer/detokenizer.h"

namespace deepinfer {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

uint64_t DrawSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

Status CheckRequest(const ModelInstance& model, const GenerationRequest& request) {
  RETURN_IF_ERROR(request.sampling.Validate(model.config().vocab_size));
  if (request.prompt.empty()) {
    return InvalidArgument("prompt: found no tokens, expected at least one");
  }
  const auto prompt_len = static_cast<int64_t>(request.prompt.size());
  if (prompt_len >= model.max_model_len()) {
    return InvalidArgument(
        fmt::format("prompt: found {} tokens, expected fewer than the context of {}", prompt_len,
                    model.max_model_len()));
  }
  if (request.prefill.keep < model.config().window_size) {
    return InvalidArgument(
        fmt::format("--yoco-prefill-keep-tokens: found {}, expected at least the window, {}",
                    request.prefill.keep, model.config().window_size));
  }
  if (request.max_tokens < 0) {
    return InvalidArgument(
        fmt::format("max_tokens: found {}, expected a positive count", request.max_tokens));
  }
  return Status::Ok();
}

// One request in flight.
class Run {
 public:
  Run(ModelInstance& model, const GenerationRequest& request, const OnText& on_text)
      : model_(model),
        request_(request),
        on_text_(on_text),
        state_(model.NewSequence()),
        sampler_(model.config().vocab_size),
        logits_(static_cast<size_t>(model.config().vocab_size)),
        detokenizer_(*model.tokenizer()),
        stops_(request.stop) {
    result_.seed = request.sampling.seed ? *request.sampling.seed : DrawSeed();
    result_.prompt_len = static_cast<int64_t>(request.prompt.size());
    BeginPrompt(state_, request.prefill, result_.prompt_len);
    for (const BatchRow& row : request.prompt) {
      if (row.kind == RowKind::kText) counts_.AddPrompt(row.token);
    }
  }

  Result<GenerationResult> Finish() {
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(Prefill());
    result_.prefill_seconds = SecondsSince(start);
    const Clock::time_point decode_start = Clock::now();
    RETURN_IF_ERROR(Decode());
    result_.decode_seconds = SecondsSince(decode_start);
    return std::move(result_);
  }

 private:
  Status Forward(std::span<const BatchRow> rows, bool want_logits) {
    const SequenceSlice slice{.state = &state_,
                              .num_rows = static_cast<int64_t>(rows.size()),
                              .prefill = request_.prefill};
    const auto last = static_cast<int32_t>(rows.size()) - 1;
    return model_.transformer().Forward(
        model_.context(),
        {.rows = rows,
         .slices = {&slice, 1},
         .logit_rows = {&last, want_logits ? size_t{1} : size_t{0}}},
        {.logits = logits_.data(), .main_hidden = nullptr});
  }

  Status Prefill() {
    const std::span<const BatchRow> prompt(request_.prompt);
    const auto chunk = static_cast<size_t>(
        request_.chunk > 0 ? std::min(request_.chunk, kMaxBatchRows) : kMaxBatchRows);
    for (size_t begin = 0; begin < prompt.size(); begin += chunk) {
      const size_t count = std::min(chunk, prompt.size() - begin);
      RETURN_IF_ERROR(Forward(prompt.subspan(begin, count), begin + count == prompt.size()));
    }
    return Status::Ok();
  }

  Status Decode() {
    const int64_t room = model_.max_model_len() - result_.prompt_len;
    const int64_t budget = request_.max_tokens > 0 ? std::min(request_.max_tokens, room) : room;
    for (int64_t i = 0; i < budget; ++i) {
      const int32_t token = ChooseToken();
      if (!request_.ignore_eos && token == model_.config().eos_token) return EndText();
      RETURN_IF_ERROR(Show(detokenizer_.Add(token)));
      if (stopped_) return Status::Ok();
      if (i + 1 == budget) break;
      const BatchRow row{.token = token, .pos = state_.len()};
      RETURN_IF_ERROR(Forward({&row, 1}, true));
    }
    result_.finish_reason = FinishReason::kLength;
    return EndText();
  }

  int32_t ChooseToken() {
    const int num_logprobs = request_.sampling.num_logprobs;
    const std::vector<float> raw = num_logprobs >= 0 ? logits_ : std::vector<float>();
    counts_.Apply(request_.sampling, logits_);
    const int32_t token = sampler_.Choose(
        logits_, request_.sampling, {.seed = result_.seed, .choice = 0, .position = state_.len()});
    counts_.AddOutput(token);
    result_.tokens.push_back(num_logprobs >= 0 ? Logprobs(raw, token, num_logprobs)
                                               : SampledToken{.token = token});
    return token;
  }

  Status Show(std::string_view text) {
    const StopStrings::Piece piece = stops_.Add(text);
    stopped_ = piece.stopped;
    if (stopped_) {
      result_.stop_string = piece.stop;
      result_.finish_reason = FinishReason::kStop;
    }
    return Emit(piece.text);
  }

  Status EndText() {
    RETURN_IF_ERROR(Show(detokenizer_.Flush()));
    return stopped_ ? Status::Ok() : Emit(stops_.Flush());
  }

  Status Emit(std::string_view text) {
    if (text.empty()) return Status::Ok();
    result_.text.append(text);
    return on_text_ ? on_text_(text) : Status::Ok();
  }

  ModelInstance& model_;
  const GenerationRequest& request_;
  const OnText& on_text_;
  SequenceState state_;
  Sampler sampler_;
  std::vector<float> logits_;  // [vocab_size]
  TokenCounts counts_;
  Detokenizer detokenizer_;
  StopStrings stops_;
  bool stopped_ = false;  // a stop string was found
  GenerationResult result_;
};

}  // namespace

std::vector<BatchRow> TextRows(const std::vector<int32_t>& tokens) {
  std::vector<BatchRow> rows;
  rows.reserve(tokens.size());
  for (const int32_t token : tokens) {
    rows.push_back({.token = token, .pos = static_cast<int64_t>(rows.size())});
  }
  return rows;
}

Result<GenerationResult> Generate(ModelInstance& model, const GenerationRequest& request,
                                  const OnText& on_text) {
  CHECK(model.tokenizer() != nullptr);
  RETURN_IF_ERROR(CheckRequest(model, request));
  return Run(model, request, on_text).Finish();
}

}  // namespace deepinfer
