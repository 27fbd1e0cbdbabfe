#include "tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

namespace deepinfer {
namespace {

const Tokenizer& Nano() {
  static const Tokenizer tokenizer =
      *Tokenizer::Load(std::string(DEEPINFER_SOURCE_DIR) + "/models/nano/tokenizer.json");
  return tokenizer;
}

// The token of a single byte.
int32_t ByteToken(uint8_t byte) {
  for (int32_t token = 0; token < Nano().vocab_size(); ++token) {
    if (Nano().BytesOf(token) == std::string(1, static_cast<char>(byte))) return token;
  }
  return -1;
}

TEST(DetokenizerTest, HoldsBackIncompleteCharacters) {
  Detokenizer detokenizer(Nano());
  EXPECT_EQ(detokenizer.Add(ByteToken(0xE5)), "");
  EXPECT_EQ(detokenizer.Add(ByteToken(0xAD)), "");
  EXPECT_TRUE(detokenizer.holds_back());
  EXPECT_EQ(detokenizer.Add(ByteToken(0x97)), "字");
  EXPECT_FALSE(detokenizer.holds_back());
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(DetokenizerTest, ReplacesWhatCannotBecomeACharacter) {
  Detokenizer detokenizer(Nano());
  EXPECT_EQ(detokenizer.Add(ByteToken(0xE5)), "");
  EXPECT_EQ(detokenizer.Add(ByteToken('a')), "\uFFFDa");
  EXPECT_EQ(detokenizer.Add(ByteToken(0x80)), "\uFFFD");
  EXPECT_EQ(detokenizer.Add(ByteToken(0xF0)), "");
  EXPECT_EQ(detokenizer.Add(ByteToken(0x9F)), "");
  EXPECT_EQ(detokenizer.Flush(), "\uFFFD");
  EXPECT_EQ(detokenizer.Flush(), "");
}

TEST(DetokenizerTest, SpellsOutAddedTokensAndIgnoresUnknownIds) {
  Detokenizer detokenizer(Nano());
  EXPECT_EQ(detokenizer.Add(Nano().special().think_end), "</think>");
  EXPECT_EQ(detokenizer.Add(Nano().vocab_size()), "");
  EXPECT_EQ(detokenizer.Add(-1), "");
}

TEST(DetokenizerTest, PiecesOfRandomTokensEqualTheLossyDecodeOfTheWhole) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int32_t> any(0, Nano().vocab_size() - 1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> tokens;
    std::string bytes;
    for (int i = 0; i < 12; ++i) {
      // Bytes above 0x7F more often than chance, to break sequences in every way.
      tokens.push_back(i % 2 == 0 ? ByteToken(static_cast<uint8_t>(0x80 + random() % 128))
                                  : any(random));
    }
    Detokenizer detokenizer(Nano());
    std::string text;
    for (const int32_t token : tokens) {
      const std::string piece(detokenizer.Add(token));
      ASSERT_EQ(FirstInvalidUtf8(piece), std::nullopt);
      text += piece;
    }
    text += detokenizer.Flush();
    ASSERT_EQ(text, Nano().Decode(tokens));
  }
}

}  // namespace
}  // namespace deepinfer
