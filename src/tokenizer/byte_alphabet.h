// The byte-level alphabet of tokenizer.json: every byte is written as one printable character, so
// that a vocabulary of arbitrary byte strings fits into JSON text (prompt_format.md section 1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {

// The character (UTF-8) that stands for a byte.
std::string SpellByte(uint8_t byte);

// The byte that a character stands for; nullopt for characters outside the alphabet.
std::optional<uint8_t> ByteOfCharacter(char32_t character);

// Appends the bytes that a spelling stands for and returns true, or appends nothing and returns
// false when a character is outside the alphabet.  Precondition: spelling is valid UTF-8.
bool AppendSpelledBytes(std::string_view spelling, std::string& out);

}  // namespace deepinfer
