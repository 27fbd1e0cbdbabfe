// A conversation with the model: its messages, and the state that the last answer left behind.
// Knows nothing of terminals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/request_builder.h"
#include "apps/request_options.h"
#include "base/status.h"
#include "engine/generator.h"
#include "engine/model_instance.h"
#include "engine/request.h"
#include "tokenizer/chat.h"

namespace deepinfer {

// Hears the answer while it is written.
struct AnswerCallbacks {
  TextCallback on_text;
  PrefillCallback on_prefill;
};

// Sums over the whole session.
struct ChatTotals {
  int64_t answers = 0;
  int64_t prompt_tokens = 0;  // of all prompts
  int64_t reused_tokens = 0;  // of them, not computed again
  int64_t output_tokens = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

// Not thread-safe.  The model must outlive it.
class ChatSession {
 public:
  // options.system begins the conversation.
  ChatSession(ModelInstance& model, const RequestOptions& options, const RequestDefaults& defaults);

  // Each of these has the model answer and keeps the answer, also one that a stop of the model's
  // context cut short.  After an error the conversation is what it was before.
  // A new message of the user.
  Result<GenerationResult> Ask(std::string text, const AnswerCallbacks& callbacks);
  // The last message again.  InvalidArgument when there is none of the user's.
  Result<GenerationResult> Retry(const AnswerCallbacks& callbacks);
  // Another text for the user's message `number` (from 1); what came after it is forgotten.
  Result<GenerationResult> Edit(int64_t number, std::string text, const AnswerCallbacks& callbacks);

  // Text of the user's message `number` (from 1); InvalidArgument when there is none.
  Result<std::string> UserText(int64_t number) const;
  // An empty text takes the system message away.
  void SetSystem(std::string text);
  // A name or number of an effort, or "off" for no thinking.
  Status SetEffort(const std::string& effort);
  // Forgets everything but the system message.
  void Clear();
  void SetMessages(std::vector<Message> messages) { messages_ = std::move(messages); }

  const std::vector<Message>& messages() const { return messages_; }
  bool thinking() const { return options_.thinking.value_or(false); }
  const PrefillOptions& prefill() const { return defaults_.prefill; }
  const ChatTotals& totals() const { return totals_; }
  // Tokens that the kept state covers.
  int64_t context_tokens() const { return std::ssize(computed_); }

 private:
  Result<size_t> UserIndex(int64_t number) const;
  Result<GenerationResult> Answer(std::vector<Message> conversation, uint64_t attempt,
                                  const AnswerCallbacks& callbacks);
  void GiveState(GenerationRequest& request, const std::vector<int32_t>& prompt);
  void TakeState(GenerationResult& result, const std::vector<int32_t>& prompt);
  void Count(const GenerationResult& result);

  ModelInstance& model_;
  RequestOptions options_;
  RequestDefaults defaults_;
  std::vector<Message> messages_;
  uint64_t attempt_ = 0;  // of the last message; changes a seed that was given
  ChatTotals totals_;
  std::optional<SequenceState> state_;
  std::vector<int32_t> computed_;  // [state_->len()] the tokens it covers
};

// An answer of the model as a message: reasoning, text and calls taken apart.
Message AnswerMessage(const GenerationResult& result, ThinkingMode mode,
                      const Tokenizer& tokenizer);

}  // namespace deepinfer
