// Splits text into the words that byte-pair encoding never crosses (prompt_format.md section 1):
// successive regular expressions, each applied inside the pieces the one before it left.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// Move-only.  Immutable; thread-safe.
class PreTokenizer {
 public:
  PreTokenizer();
  // Patterns in Oniguruma's notation, as tokenizer.json has them.  An error names the pattern and
  // the place in it that could not be compiled.
  static Result<PreTokenizer> Create(const std::vector<std::string>& patterns);
  PreTokenizer(PreTokenizer&& other) noexcept;
  PreTokenizer& operator=(PreTokenizer&& other) noexcept;
  ~PreTokenizer();

  // Replaces `pieces` by consecutive views that cover `text`; every match of a pattern and every
  // gap between matches is a piece of its own.  Precondition: text is valid UTF-8.
  // Fails when a pattern needs too many steps, which only patterns with nested repetition do.
  Status Split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  class Pattern;
  std::vector<Pattern> patterns_;
};

}  // namespace deepinfer
