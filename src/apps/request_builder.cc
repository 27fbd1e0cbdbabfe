#include "apps/request_builder.h"

#include <fmt/format.h>

namespace deepinfer {
namespace {

// Raw text gets nothing but the beginning-of-sentence token, if it does not spell one itself.
Result<std::vector<int32_t>> RawTokens(const std::string& text, const ModelInstance& model) {
  ASSIGN_OR_RETURN(std::vector<int32_t> tokens, model.tokenizer()->Encode(text));
  const int32_t bos = model.config().bos_token;
  if (tokens.empty() || tokens.front() != bos) tokens.insert(tokens.begin(), bos);
  return tokens;
}

Result<std::vector<Message>> MessagesOf(PromptSource source, const RequestOptions& options) {
  if (source.messages) {
    if (options.system) {
      return InvalidArgument("system: found one beside messages, expected it to be one of them");
    }
    return *std::move(source.messages);
  }
  std::vector<Message> messages;
  if (options.system && !options.system->empty()) {
    messages.push_back(Message::Text(Role::kSystem, *options.system));
  }
  messages.push_back(Message::Text(Role::kUser, *std::move(source.text)));
  return messages;
}

}  // namespace

Result<ChatOptions> ChatOptionsOf(const RequestOptions& options) {
  const EffortNames names = EffortNames::Newer();
  const bool thinking = options.thinking.value_or(false);
  ChatOptions chat{.mode = thinking ? ThinkingMode::kThinking : ThinkingMode::kChat,
                   .reasoning_effort = names.default_value};
  if (!options.effort) return chat;
  if (!thinking) return InvalidArgument("effort: found one without thinking, expected both");
  ASSIGN_OR_RETURN(chat.reasoning_effort, ResolveEffort(*options.effort, names));
  return chat;
}

Result<std::vector<int32_t>> ChatTokens(const std::vector<Message>& messages,
                                        const ChatOptions& options, const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const RenderedPrompt prompt, RenderChat(messages, options));
  if (!prompt.images.empty()) {
    return Unsupported(
        fmt::format("messages: found {} image(s), expected text only: this build "
                    "has no vision",
                    prompt.images.size()));
  }
  return tokenizer.EncodeSegments(prompt.segments);
}

GenerationRequest RequestFor(const std::vector<int32_t>& prompt, const RequestOptions& options,
                             const RequestDefaults& defaults) {
  return {.prompt = TextRows(prompt),
          .sampling = options.SamplingOver(defaults.recommended),
          .stop = options.stop.value_or(std::vector<std::string>()),
          .max_tokens = options.max_tokens.value_or(0),
          .prefill = defaults.prefill,
          .chunk = defaults.chunk};
}

Result<GenerationRequest> BuildRequest(const ModelInstance& model, PromptSource source,
                                       const RequestOptions& options,
                                       const RequestDefaults& defaults) {
  if (source.text.has_value() == source.messages.has_value()) {
    return InvalidArgument(source.text ? "found prompt and messages, expected one of them"
                                       : "found neither prompt nor messages, expected one of them");
  }
  if (source.text && source.text->empty()) {
    return InvalidArgument("prompt: found an empty text, expected some");
  }
  if (options.raw.value_or(false)) {
    if (source.messages || options.system || options.thinking.value_or(false)) {
      return InvalidArgument("raw: expected no messages, system or thinking beside it");
    }
    ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, RawTokens(*source.text, model));
    return RequestFor(tokens, options, defaults);
  }
  ASSIGN_OR_RETURN(const ChatOptions chat, ChatOptionsOf(options));
  ASSIGN_OR_RETURN(const std::vector<Message> messages, MessagesOf(std::move(source), options));
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                   ChatTokens(messages, chat, *model.tokenizer()));
  return RequestFor(tokens, options, defaults);
}

}  // namespace deepinfer
