// The text side of one answer: tokens in, certain text out, and why it ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "engine/stop.h"
#include "tokenizer/detokenizer.h"

namespace deepinfer {

class ModelInstance;

struct AnswerLimits {
  std::vector<std::string> stop;
  std::optional<int32_t> end_token;  // ends the answer and is not part of its text
  int64_t max_tokens = 1;            // at least 1
};

// Of a checked request on this model.
AnswerLimits LimitsOf(const ModelInstance& model, const GenerationRequest& request);

// Not thread-safe.  The tokenizer must outlive it.
class AnswerText {
 public:
  AnswerText(const Tokenizer& tokenizer, AnswerLimits limits);

  // Takes the next token, unless finished.  Returns the text that became certain, valid until the
  // next call.
  std::string_view Add(int32_t token);
  // The same for an answer whose text somebody else makes: only the end token and max_tokens end
  // it.
  void Pass(int32_t token);
  // Ends the answer from outside; what was held back becomes certain.
  std::string_view End(FinishReason reason);

  bool finished() const { return finish_.has_value(); }
  // Precondition: finished().
  FinishReason finish_reason() const { return *finish_; }
  const std::string& stop_string() const { return stop_string_; }
  // All certain text; moved out by the owner at the end.
  std::string& text() { return text_; }

 private:
  void Show(std::string_view text);
  void Finish(FinishReason reason);

  AnswerLimits limits_;
  Detokenizer detokenizer_;
  StopStrings stops_;
  std::string text_;
  int64_t num_tokens_ = 0;
  std::optional<FinishReason> finish_;
  std::string stop_string_;  // the one that was found, if any
};

}  // namespace deepinfer
