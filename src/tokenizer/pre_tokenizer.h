// Splits text into the pieces that BPE works on: regular expressions applied one after the other,
// each to the pieces that the one before left ("Split", behaviour "Isolated").
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// Immutable; thread-safe.
class PreTokenizer {
 public:
  // Patterns in the order of the file.  Unsupported when one does not compile.
  static Result<PreTokenizer> Compile(const std::vector<std::string>& patterns);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // Views into `text` (valid UTF-8), in order, none empty, together the whole text.
  std::vector<std::string_view> Split(std::string_view text) const;

 private:
  struct Pattern;
  PreTokenizer();
  static void SplitBy(const Pattern& pattern, std::string_view piece,
                      std::vector<std::string_view>& out);

  std::vector<Pattern> patterns_;
};

}  // namespace deepinfer
