#include "apps/chat/chat_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/reuse.h"
#include "tokenizer/completion.h"

namespace deepinfer {
namespace {

std::string TextOf(const Message& message) {
  std::string text;
  for (const ContentBlock& block : message.content) text += block.text;
  return text;
}

}  // namespace

Message AnswerMessage(const GenerationResult& result, ThinkingMode mode,
                      const Tokenizer& tokenizer) {
  const SpecialTokens& special = tokenizer.special();
  const bool ended = !result.tokens.empty() && result.tokens.back() == special.eos;
  const Result<Completion> parsed =
      ended ? ParseCompletion(result.text + std::string(tokenizer.SpellingOf(special.eos)), mode)
            : Result<Completion>(InvalidArgument("cut short"));
  if (parsed.ok()) {
    Message message = Message::Text(Role::kAssistant, parsed->content);
    message.reasoning_content = parsed->reasoning_content;
    message.tool_calls = parsed->tool_calls;
    return message;
  }
  if (mode == ThinkingMode::kChat) return Message::Text(Role::kAssistant, result.text);
  // Cut short, or not as it should be: all up to the end of thinking is reasoning.
  const std::string_view think_end = tokenizer.SpellingOf(special.think_end);
  const size_t end = result.text.find(think_end);
  const bool thought = end != std::string::npos;
  Message message = Message::Text(
      Role::kAssistant, thought ? result.text.substr(end + think_end.size()) : std::string());
  message.reasoning_content = result.text.substr(0, end);
  return message;
}

ChatSession::ChatSession(ModelInstance& model, const RequestOptions& options,
                         const RequestDefaults& defaults)
    : model_(model), options_(options), defaults_(defaults) {
  SetSystem(options.system.value_or(""));
}

Result<GenerationResult> ChatSession::Ask(std::string text, const AnswerCallbacks& callbacks) {
  std::vector<Message> conversation = messages_;
  conversation.push_back(Message::Text(Role::kUser, std::move(text)));
  return Answer(std::move(conversation), 0, callbacks);
}

Result<GenerationResult> ChatSession::Retry(const AnswerCallbacks& callbacks) {
  std::vector<Message> conversation = messages_;
  while (!conversation.empty() && conversation.back().role == Role::kAssistant) {
    conversation.pop_back();
  }
  if (conversation.empty() || conversation.back().role == Role::kSystem) {
    return InvalidArgument("found no message to answer, expected one");
  }
  return Answer(std::move(conversation), attempt_ + 1, callbacks);
}

Result<GenerationResult> ChatSession::Edit(int64_t number, std::string text,
                                           const AnswerCallbacks& callbacks) {
  ASSIGN_OR_RETURN(const size_t index, UserIndex(number));
  std::vector<Message> conversation(messages_.begin(),
                                    messages_.begin() + static_cast<ptrdiff_t>(index));
  conversation.push_back(Message::Text(Role::kUser, std::move(text)));
  return Answer(std::move(conversation), 0, callbacks);
}

Result<std::string> ChatSession::UserText(int64_t number) const {
  ASSIGN_OR_RETURN(const size_t index, UserIndex(number));
  return TextOf(messages_[index]);
}

Result<size_t> ChatSession::UserIndex(int64_t number) const {
  int64_t seen = 0;
  for (size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].role == Role::kUser && ++seen == number) return i;
  }
  return InvalidArgument(fmt::format("message: found {}, expected {}", number,
                                     seen == 0 ? "one to exist" : fmt::format("1 to {}", seen)));
}

void ChatSession::SetSystem(std::string text) {
  if (!messages_.empty() && messages_.front().role == Role::kSystem) {
    messages_.erase(messages_.begin());
  }
  if (!text.empty()) {
    messages_.insert(messages_.begin(), Message::Text(Role::kSystem, std::move(text)));
  }
}

Status ChatSession::SetEffort(const std::string& effort) {
  RequestOptions options = options_;
  options.thinking = effort != "off";
  options.effort = effort == "off" ? std::nullopt : std::optional(effort);
  RETURN_IF_ERROR(ChatOptionsOf(options).status());
  options_ = std::move(options);
  return Status::Ok();
}

void ChatSession::Clear() {
  const bool system = !messages_.empty() && messages_.front().role == Role::kSystem;
  messages_.resize(system ? 1 : 0);
  state_.reset();
  computed_.clear();
}

Result<GenerationResult> ChatSession::Answer(std::vector<Message> conversation, uint64_t attempt,
                                             const AnswerCallbacks& callbacks) {
  ASSIGN_OR_RETURN(const ChatOptions chat, ChatOptionsOf(options_));
  ASSIGN_OR_RETURN(const std::vector<int32_t> prompt,
                   ChatTokens(conversation, chat, *model_.tokenizer()));
  GenerationRequest request = RequestFor(prompt, options_, defaults_);
  if (request.sampling.seed) *request.sampling.seed += attempt;
  request.keep_state = true;
  GiveState(request, prompt);
  ASSIGN_OR_RETURN(
      GenerationResult result,
      GenerateUntilStopped(model_, std::move(request), callbacks.on_text, callbacks.on_prefill));
  TakeState(result, prompt);
  Count(result);
  attempt_ = attempt;
  // An answer that was stopped before its first word leaves the question, ready to be retried.
  if (!result.tokens.empty()) {
    conversation.push_back(AnswerMessage(result, chat.mode, *model_.tokenizer()));
  }
  messages_ = std::move(conversation);
  return result;
}

// The state goes along when the prompt goes on where it ended and a cold start would give the same
// bits.  In compact mode a cold start is the definition, and what an earlier prompt left in the
// decoder's windows is not what a longer one would: then everything is computed again.
void ChatSession::GiveState(GenerationRequest& request, const std::vector<int32_t>& prompt) {
  std::optional<SequenceState> state = std::exchange(state_, std::nullopt);
  const std::vector<int32_t> computed = std::exchange(computed_, {});
  if (!state) return;
  const int64_t reusable = ReusableTokens(*state, computed, prompt, defaults_.prefill);
  if (reusable == 0) return;
  state->Rollback(state->len() - reusable);
  request.state = std::move(state);
}

void ChatSession::TakeState(GenerationResult& result, const std::vector<int32_t>& prompt) {
  computed_ = prompt;
  computed_.insert(computed_.end(), result.tokens.begin(), result.tokens.end());
  computed_.resize(result.state ? static_cast<size_t>(result.state->len()) : 0);
  state_ = std::exchange(result.state, std::nullopt);
}

void ChatSession::Count(const GenerationResult& result) {
  ++totals_.answers;
  totals_.prompt_tokens += result.prompt_len;
  totals_.reused_tokens += result.reused_len;
  totals_.output_tokens += std::ssize(result.tokens);
  totals_.prefill_seconds += result.prefill_seconds;
  totals_.decode_seconds += result.decode_seconds;
}

}  // namespace deepinfer
