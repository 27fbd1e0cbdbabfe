// UTF-8 validation as the Unicode standard defines it (no surrogates, no overlong forms).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace deepinfer {

// What the bytes at the start of `text` are.
struct Utf8Step {
  enum class Kind {
    kCharacter,   // a whole character of `length` bytes
    kIncomplete,  // a proper prefix of one, and the text ends: more bytes may complete it
    kInvalid,     // `length` bytes that no continuation makes valid; a decoder writes one U+FFFD
  };
  Kind kind = Kind::kCharacter;
  size_t length = 0;
};

// Precondition: text is not empty.
Utf8Step NextUtf8(std::string_view text);

// Offset of the first byte that is not part of valid UTF-8; npos when all is well.
size_t FirstInvalidUtf8(std::string_view text);

// The text with every invalid part replaced by U+FFFD, as lossy decoders do.
std::string LossyUtf8(std::string_view text);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace deepinfer
