#include "engine/answer_text.h"

#include <algorithm>

#include "base/check.h"
#include "engine/model_instance.h"

namespace deepinfer {
namespace {

// Room made at the start, so that answers of usual length never grow their text.
constexpr int64_t kBytesPerToken = 8;
constexpr int64_t kMaxReservedBytes = 1 << 16;

}  // namespace

AnswerLimits LimitsOf(const ModelInstance& model, const GenerationRequest& request) {
  const int64_t room = model.max_model_len() - static_cast<int64_t>(request.prompt.size());
  AnswerLimits limits{.stop = request.stop, .end_token = std::nullopt, .max_tokens = room};
  if (!request.ignore_eos) limits.end_token = model.config().eos_token;
  if (request.max_tokens > 0) limits.max_tokens = std::min(request.max_tokens, room);
  return limits;
}

AnswerText::AnswerText(const Tokenizer& tokenizer, AnswerLimits limits)
    : limits_(std::move(limits)), detokenizer_(tokenizer), stops_(limits_.stop) {
  CHECK_GE(limits_.max_tokens, 1);
  const int64_t bytes = std::min(limits_.max_tokens, kMaxReservedBytes) * kBytesPerToken;
  text_.reserve(static_cast<size_t>(std::min(bytes, kMaxReservedBytes)));
}

std::string_view AnswerText::Add(int32_t token) {
  CHECK(!finished());
  const size_t shown = text_.size();
  ++num_tokens_;
  if (token == limits_.end_token) {
    Finish(FinishReason::kStop);
  } else {
    Show(detokenizer_.Add(token));
    if (!finished() && num_tokens_ == limits_.max_tokens) Finish(FinishReason::kLength);
  }
  return std::string_view(text_).substr(shown);
}

void AnswerText::Pass(int32_t token) {
  CHECK(!finished());
  ++num_tokens_;
  if (token == limits_.end_token) {
    finish_ = FinishReason::kStop;
  } else if (num_tokens_ == limits_.max_tokens) {
    finish_ = FinishReason::kLength;
  }
}

std::string_view AnswerText::End(FinishReason reason) {
  CHECK(!finished());
  const size_t shown = text_.size();
  Finish(reason);
  return std::string_view(text_).substr(shown);
}

void AnswerText::Show(std::string_view text) {
  const std::string* stop = stops_.Add(text, text_);
  if (stop == nullptr) return;
  stop_string_ = *stop;
  finish_ = FinishReason::kStop;
}

void AnswerText::Finish(FinishReason reason) {
  Show(detokenizer_.Flush());
  if (finished()) return;  // the last character completed a stop string
  stops_.Flush(text_);
  finish_ = reason;
}

}  // namespace deepinfer
