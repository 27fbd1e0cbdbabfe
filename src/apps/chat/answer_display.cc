#include "apps/chat/answer_display.h"

#include "engine/stop.h"

namespace deepinfer {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";

}  // namespace

AnswerDisplay::AnswerDisplay(Output& out, std::string_view think_end)
    : out_(out), think_end_(think_end), thinking_(!think_end.empty()) {}

Status AnswerDisplay::Begin() {
  begun_ = true;
  if (!thinking_) return Status::Ok();
  return out_.Write(out_.IsTerminal() ? kDim : "<think>\n");
}

Status AnswerDisplay::EndThinking() {
  thinking_ = false;
  RETURN_IF_ERROR(out_.Write("\n"));
  return out_.WriteNow(out_.IsTerminal() ? kPlain : "</think>\n");
}

Status AnswerDisplay::Show(std::string_view text) {
  if (!begun_) RETURN_IF_ERROR(Begin());
  if (!thinking_) return out_.WriteNow(text);
  held_ += text;
  const size_t end = held_.find(think_end_);
  if (end == std::string::npos) {
    const size_t pending = PendingLength(held_, think_end_);
    const std::string certain = held_.substr(0, held_.size() - pending);
    held_.erase(0, certain.size());
    return out_.WriteNow(certain);
  }
  RETURN_IF_ERROR(out_.Write(std::string_view(held_).substr(0, end)));
  RETURN_IF_ERROR(EndThinking());
  return out_.WriteNow(std::string_view(held_).substr(end + think_end_.size()));
}

Status AnswerDisplay::Finish() {
  if (begun_ && thinking_) {
    RETURN_IF_ERROR(out_.Write(held_));
    return EndThinking();
  }
  return begun_ ? out_.WriteNow("\n") : Status::Ok();
}

}  // namespace deepinfer
