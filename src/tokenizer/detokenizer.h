// Turns the tokens of one answer into text as they arrive.  The pieces are always whole UTF-8: a
// sequence that a token leaves open is held back, and bytes that turn out invalid become U+FFFD, so
// that the pieces together equal Tokenizer::Decode of all tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace deepinfer {

// Thread-compatible.  The tokenizer must outlive it.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // The text that this token completes; empty while a character is incomplete.  Ids outside the
  // vocabulary stand for no text.  Both results are valid until the next call.
  std::string_view Add(int32_t token);
  // Ends the answer: U+FFFD when a character stayed incomplete, otherwise empty.  Add may follow
  // and starts a new answer.
  std::string_view Flush();

  bool holds_back() const { return decoder_.num_held() > 0; }

 private:
  const Tokenizer* tokenizer_;
  LossyUtf8Decoder decoder_;
  std::string piece_;  // kept for its capacity
};

}  // namespace deepinfer
