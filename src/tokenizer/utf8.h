// UTF-8 as this folder needs it: where text is invalid, one code point at a time, and lossy
// decoding of bytes that arrive in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Offset of the first byte that no valid sequence contains, or nullopt for valid text.  An
// incomplete sequence at the end counts as invalid from its first byte.
std::optional<size_t> FirstInvalidUtf8(std::string_view text);

// Reads the code point at `pos` and moves `pos` behind it.  Precondition: text is valid UTF-8 and
// pos < text.size() is at the start of a sequence.
char32_t ReadCodePoint(std::string_view text, size_t& pos);

// Precondition: code_point is a Unicode scalar value.
void AppendCodePoint(char32_t code_point, std::string& out);

// Decodes bytes that arrive in pieces.  Every maximal prefix of a valid sequence that turns out
// wrong, and every other bad byte, becomes one U+FFFD (the practice that the Unicode Standard
// recommends under 3.9, Unicode Encoding Forms), so the pieces together equal a lossy decode of the
// whole.
// Thread-compatible.
class LossyUtf8Decoder {
 public:
  // Appends the text that `bytes` completes; an incomplete sequence at the end is held back.
  void Add(std::string_view bytes, std::string& out);
  // Ends the input: an incomplete sequence becomes one U+FFFD.  Ready for new input afterwards.
  void Finish(std::string& out);

  size_t num_held() const { return num_held_; }

 private:
  char held_[3] = {};
  size_t num_held_ = 0;
};

}  // namespace deepinfer
