// Token ids to text, a piece at a time, never half a character.
#pragma once

#include <cstdint>
#include <string>

#include "tokenizer/tokenizer.h"

namespace deepinfer {

// The pieces together are the lossy decoding of all bytes together: what no continuation can make
// valid becomes U+FFFD, an unfinished character waits.  Not thread-safe.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // Text that is certain after this token.
  std::string Add(int32_t token);
  // What is left at the end: an unfinished character becomes U+FFFD.
  std::string Flush();

 private:
  const Tokenizer* tokenizer_;
  std::string held_;  // a proper prefix of one character
};

}  // namespace deepinfer
