// The byte-level alphabet: every byte as one printable character (GPT-2's mapping).  Printable
// Latin-1 bytes stand for themselves, the others for U+0100, U+0101, ... in order.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace deepinfer {

// UTF-8 spelling of each byte.
const std::array<std::string, 256>& ByteSpellings();

// The bytes that a spelling stands for; empty when a character is not of the alphabet.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

}  // namespace deepinfer
