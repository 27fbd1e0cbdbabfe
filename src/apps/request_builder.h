// From what a user wrote to what the engine takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/request_options.h"
#include "base/status.h"
#include "deepinfer/engine.h"
#include "engine/request.h"
#include "model/prefill.h"
#include "sampling/params.h"
#include "tokenizer/chat.h"

namespace deepinfer {

// One of the two.
struct PromptSource {
  std::optional<std::string> text;
  std::optional<std::string> messages;  // a JSON list
};

// What no request says for itself.
struct RequestDefaults {
  SamplingParams recommended;  // by the checkpoint
  PrefillOptions prefill;
  int64_t chunk = 0;
};

// Mode and effort of the chat template.  InvalidArgument for an unknown effort, or one without
// thinking.
Result<ChatOptions> ChatOptionsOf(const RequestOptions& options);

// The prompt of a conversation.  Unsupported when it holds images.
Result<std::vector<int32_t>> ChatTokens(const std::vector<Message>& messages,
                                        const ChatOptions& options, const Tokenizer& tokenizer);

// A request for these prompt tokens.
GenerationRequest RequestFor(const std::vector<int32_t>& prompt, const RequestOptions& options,
                             const RequestDefaults& defaults);

// A request of the public engine from a text (raw, or as the user's message) or from messages.
// InvalidArgument for options that contradict each other.
Result<Request> BuildRequest(const Engine& engine, PromptSource source,
                             const RequestOptions& options);

}  // namespace deepinfer
