#include "apps/request_builder.h"

#include <fmt/format.h>

namespace deepinfer {
namespace {

Result<ChatPrompt> ChatPromptOf(PromptSource source, const RequestOptions& options) {
  ChatPrompt prompt{.thinking = options.thinking.value_or(false),
                    .effort = options.effort.value_or("")};
  if (source.messages) {
    if (options.system) {
      return InvalidArgument("system: found one beside messages, expected it to be one of them");
    }
    prompt.messages_json = *std::move(source.messages);
    return prompt;
  }
  if (options.system && !options.system->empty()) {
    prompt.messages.push_back({.role = "system", .content = *options.system});
  }
  prompt.messages.push_back({.role = "user", .content = *std::move(source.text)});
  return prompt;
}

Result<std::vector<int32_t>> PromptTokens(const Engine& engine, PromptSource source,
                                          const RequestOptions& options) {
  if (options.raw.value_or(false)) {
    if (source.messages || options.system || options.thinking.value_or(false)) {
      return InvalidArgument("raw: expected no messages, system or thinking beside it");
    }
    return engine.Encode(*source.text);
  }
  ASSIGN_OR_RETURN(const ChatPrompt prompt, ChatPromptOf(std::move(source), options));
  return engine.EncodeChat(prompt);
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

Result<Request> BuildRequest(const Engine& engine, PromptSource source,
                             const RequestOptions& options) {
  if (source.text.has_value() == source.messages.has_value()) {
    return InvalidArgument(source.text ? "found prompt and messages, expected one of them"
                                       : "found neither prompt nor messages, expected one of them");
  }
  if (source.text && source.text->empty()) {
    return InvalidArgument("prompt: found an empty text, expected some");
  }
  ASSIGN_OR_RETURN(std::vector<int32_t> prompt, PromptTokens(engine, std::move(source), options));
  return Request{.prompt = std::move(prompt),
                 .sampling = options.Sampling(),
                 .stop = options.stop.value_or(std::vector<std::string>()),
                 .max_tokens = options.max_tokens.value_or(0),
                 .num_logprobs = options.logprobs.value_or(-1)};
}

}  // namespace deepinfer
