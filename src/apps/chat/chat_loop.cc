#include "apps/chat/chat_loop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "apps/chat/answer_display.h"
#include "apps/chat/chat_input.h"
#include "apps/chat/messages_json.h"
#include "apps/generate/figures.h"
#include "apps/interrupt.h"
#include "apps/progress.h"
#include "base/machine.h"
#include "inspect/render.h"
#include "io/file.h"

namespace deepinfer {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;
constexpr const char* kPrompt = "> ";

void Say(std::string_view text) { fmt::print(stderr, "{}\n", text); }

// "/edit 2 text" -> "/edit" and "2 text"
std::pair<std::string, std::string> FirstWord(std::string_view text) {
  const size_t end = text.find_first_of(" \t\n");
  if (end == std::string_view::npos) return {std::string(text), ""};
  const size_t rest = text.find_first_not_of(" \t\n", end);
  return {std::string(text.substr(0, end)),
          rest == std::string_view::npos ? "" : std::string(text.substr(rest))};
}

// One line of a message, for a list.
std::string Preview(const Message& message) {
  constexpr size_t kMaxShown = 70;
  std::string text;
  for (const ContentBlock& block : message.content) text += block.text;
  const bool cut = text.find('\n') != std::string::npos || text.size() > kMaxShown;
  text = text.substr(0, std::min(text.find('\n'), kMaxShown));
  while (cut && !text.empty() && (static_cast<uint8_t>(text.back()) & 0x80) != 0) text.pop_back();
  return cut ? text + "..." : text;
}

}  // namespace

const ChatLoop::Command ChatLoop::kCommands[] = {
    {"/help", "this list", &ChatLoop::Help},
    {"/system [TEXT]", "sets the system text; without TEXT takes it away", &ChatLoop::System},
    {"/effort N|low|high|xhigh|max|off", "how much the model thinks before it answers",
     &ChatLoop::Effort},
    {"/image FILE", "shows the model an image (this build cannot)", &ChatLoop::Image},
    {"/history", "the messages so far, those of yours numbered", &ChatLoop::History},
    {"/retry", "answers the last message again", &ChatLoop::Retry},
    {"/edit N [TEXT]", "changes your message N, forgets what came after it, and answers",
     &ChatLoop::Edit},
    {"/save FILE", "writes the messages as JSON, as generate --messages reads them",
     &ChatLoop::Save},
    {"/load FILE", "goes on with saved messages", &ChatLoop::Load},
    {"/stats", "tokens, speeds and memory", &ChatLoop::Stats},
    {"/clear", "forgets all but the system text", &ChatLoop::Clear},
    {"/quit", "leaves, as Ctrl-D does", &ChatLoop::Quit},
};

Status ChatLoop::Run() {
  if (reader_.IsTerminal()) {
    Say("A line is a message; end it with \\ to go on, or put \"\"\" around several. /help lists "
        "commands.");
  }
  while (!quit_) {
    ASSIGN_OR_RETURN(const bool more, TakeMessage());
    if (!more) break;
    RETURN_IF_ERROR(out_.Flush());
    if (stopped_ && !reader_.IsTerminal()) return Cancelled("stopped by Ctrl-C");
  }
  if (Interrupted()) return Cancelled("stopped by a signal");
  if (failures_ == 0 || reader_.IsTerminal()) return Status::Ok();
  return CorruptData(fmt::format("stdin: found {} lines that failed, expected none", failures_));
}

// Reads and acts; false at the end.
Result<bool> ChatLoop::TakeMessage() {
  ASSIGN_OR_RETURN(const TypedLine typed, ReadTypedMessage(reader_, kPrompt));
  if (typed.kind == TypedLine::Kind::kEnd) return false;
  if (typed.kind == TypedLine::Kind::kInterrupted) {
    if (interrupted_) return false;
    interrupted_ = true;
    Say("(Ctrl-C again or Ctrl-D leaves)");
    return true;
  }
  interrupted_ = false;
  if (typed.text.find_first_not_of(" \t\n") == std::string::npos) return true;
  const Status status = Dispatch(typed.text);
  if (status.ok()) return true;
  RETURN_IF_ERROR(out_.Flush());
  Say(status.message());
  ++failures_;
  return true;
}

Status ChatLoop::Dispatch(const std::string& text) {
  if (text.starts_with("/") && !text.starts_with("//")) return RunCommand(text);
  // A message that starts with a slash is written with two.
  const std::string message = text.starts_with("//") ? text.substr(1) : text;
  return Answer([&](const AnswerCallbacks& callbacks) { return session_.Ask(message, callbacks); });
}

Status ChatLoop::RunCommand(const std::string& text) {
  const auto [name, argument] = FirstWord(text);
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.push_back(FirstWord(command.usage).first);
    if (names.back() != name) continue;
    Status status = (this->*command.run)(argument);
    return std::move(status).WithContext(name);
  }
  return InvalidArgument(
      fmt::format("found unknown command '{}', expected one of {} (// starts a "
                  "message with a slash)",
                  name, fmt::join(names, ", ")));
}

Status ChatLoop::Answer(const Ask& ask) {
  const InterruptScope interrupt(model_.context());
  std::optional<Progress> prefill(std::in_place, "prefill", ProgressUnit::kTokens);
  const Tokenizer& tokenizer = *model_.tokenizer();
  AnswerDisplay display(out_, session_.thinking()
                                  ? tokenizer.SpellingOf(tokenizer.special().think_end)
                                  : std::string_view());
  const Result<GenerationResult> result =
      ask({.on_text = [&](std::string_view text) { return display.Show(text); },
           .on_prefill =
               [&](int64_t done, int64_t total) {
                 if (prefill) prefill->Update(done, total);
                 if (done == total) prefill.reset();  // the bar makes room for the text
               }});
  prefill.reset();
  stopped_ = TakeInterrupt();
  model_.context().ClearStop();
  RETURN_IF_ERROR(display.Finish());
  if (!result.ok()) return result.status();
  figures_ = FiguresOf(*result, session_.prefill());
  if (result->finish_reason == FinishReason::kCancelled) Say("[stopped]");
  if (result->finish_reason == FinishReason::kLength) Say("[cut at the most tokens allowed]");
  return Status::Ok();
}

Status ChatLoop::Help(const std::string& /*argument*/) {
  for (const Command& command : kCommands)
    Say(fmt::format("{:<34}{}", command.usage, command.help));
  return Status::Ok();
}

Status ChatLoop::System(const std::string& argument) {
  session_.SetSystem(argument);
  return Status::Ok();
}

Status ChatLoop::Effort(const std::string& argument) { return session_.SetEffort(argument); }

Status ChatLoop::Image(const std::string& argument) {
  return Unsupported(
      fmt::format("found '{}', expected no image: this build has no vision yet", argument));
}

Status ChatLoop::Save(const std::string& argument) {
  if (argument.empty()) return InvalidArgument("found no file name, expected one");
  ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(argument));
  RETURN_IF_ERROR(file.Write(MessagesJson(session_.messages())));
  RETURN_IF_ERROR(file.Commit());
  Say(fmt::format("{} messages in {}", session_.messages().size(), argument));
  return Status::Ok();
}

Status ChatLoop::Load(const std::string& argument) {
  if (argument.empty()) return InvalidArgument("found no file name, expected one");
  ASSIGN_OR_RETURN(const std::string json, ReadFile(argument, kMaxFileBytes));
  Result<std::vector<Message>> messages = ParseMessages(json);
  if (!messages.ok()) return std::move(messages).status().WithContext(argument);
  session_.SetMessages(*std::move(messages));
  Say(fmt::format("{} messages from {}", session_.messages().size(), argument));
  return Status::Ok();
}

Status ChatLoop::Stats(const std::string& /*argument*/) {
  const ChatTotals& totals = session_.totals();
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  if (figures_) Say("last answer " + *figures_);
  Say(fmt::format(
      "{} answers: prompt {} tokens ({} kept), {:.1f} tok/s; output {} tokens, {:.1f} tok/s",
      totals.answers, totals.prompt_tokens, totals.reused_tokens,
      rate(totals.prompt_tokens - totals.reused_tokens, totals.prefill_seconds),
      totals.output_tokens, rate(totals.output_tokens, totals.decode_seconds)));
  Say(fmt::format("{} messages; context {} of {} tokens; peak memory {}",
                  session_.messages().size(), session_.context_tokens(), model_.max_model_len(),
                  ShortBytes(static_cast<int64_t>(PeakMemoryBytes()))));
  return Status::Ok();
}

Status ChatLoop::Clear(const std::string& /*argument*/) {
  session_.Clear();
  return Status::Ok();
}

Status ChatLoop::History(const std::string& /*argument*/) {
  int64_t number = 0;
  for (const Message& message : session_.messages()) {
    const bool user = message.role == Role::kUser;
    Say(fmt::format("{:>4} {:<10} {}", user ? std::to_string(++number) : "", RoleName(message.role),
                    Preview(message)));
  }
  return Status::Ok();
}

Status ChatLoop::Edit(const std::string& argument) {
  const auto [word, rest] = FirstWord(argument);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) {
    return InvalidArgument(
        fmt::format("found '{}', expected the number of a message (/history shows them)", word));
  }
  ASSIGN_OR_RETURN(std::string text, session_.UserText(number));
  if (rest.empty()) {
    ASSIGN_OR_RETURN(TypedLine typed, ReadTypedMessage(reader_, "edit> ", text));
    if (typed.kind != TypedLine::Kind::kLine) return Status::Ok();
    text = std::move(typed.text);
  } else {
    text = rest;
  }
  return Answer([&](const AnswerCallbacks& callbacks) {
    return session_.Edit(number, std::move(text), callbacks);
  });
}

Status ChatLoop::Retry(const std::string& /*argument*/) {
  return Answer([&](const AnswerCallbacks& callbacks) { return session_.Retry(callbacks); });
}

Status ChatLoop::Quit(const std::string& /*argument*/) {
  quit_ = true;
  return Status::Ok();
}

}  // namespace deepinfer
