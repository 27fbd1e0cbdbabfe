#include "tokenizer/byte_alphabet.h"

#include <array>
#include <cstddef>

#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

// Printable Latin-1 characters stand for themselves; the others follow each other from U+0100.
constexpr bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

constexpr int kFirstStandIn = 0x100;

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int16_t, 512> byte{};  // of a character, -1: outside the alphabet
};

constexpr Alphabet MakeAlphabet() {
  Alphabet alphabet;
  for (int16_t& byte : alphabet.byte) byte = -1;
  int next = kFirstStandIn;
  for (int byte = 0; byte < 256; ++byte) {
    const int character = StandsForItself(byte) ? byte : next++;
    alphabet.character[static_cast<size_t>(byte)] = static_cast<char32_t>(character);
    alphabet.byte[static_cast<size_t>(character)] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = MakeAlphabet();

}  // namespace

std::string SpellByte(uint8_t byte) {
  std::string spelling;
  AppendCodePoint(kAlphabet.character[byte], spelling);
  return spelling;
}

std::optional<uint8_t> ByteOfCharacter(char32_t character) {
  if (character >= kAlphabet.byte.size() || kAlphabet.byte[character] < 0) return std::nullopt;
  return static_cast<uint8_t>(kAlphabet.byte[character]);
}

bool AppendSpelledBytes(std::string_view spelling, std::string& out) {
  const size_t start = out.size();
  for (size_t pos = 0; pos < spelling.size();) {
    const std::optional<uint8_t> byte = ByteOfCharacter(ReadCodePoint(spelling, pos));
    if (!byte) {
      out.resize(start);
      return false;
    }
    out.push_back(static_cast<char>(*byte));
  }
  return true;
}

}  // namespace deepinfer
