#include "tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string_view> Split(const std::vector<std::string>& patterns,
                                    std::string_view text) {
  const Result<PreTokenizer> splitter = PreTokenizer::Create(patterns);
  EXPECT_TRUE(splitter.ok()) << splitter.status().message();
  std::vector<std::string_view> pieces;
  const Status status = splitter->Split(text, pieces);
  EXPECT_TRUE(status.ok()) << status.message();
  return pieces;
}

TEST(PreTokenizerTest, IsolatesMatchesAndGaps) {
  EXPECT_THAT(Split({R"(\p{N}{1,3})"}, "ab12345c"), ElementsAre("ab", "123", "45", "c"));
  EXPECT_THAT(Split({}, "ab 12"), ElementsAre("ab 12"));
  EXPECT_THAT(Split({"x"}, ""), ElementsAre());
}

TEST(PreTokenizerTest, AppliesPatternsOneAfterTheOtherInsidePieces) {
  // The second pattern cannot see beyond its piece: both runs of spaces end there.
  EXPECT_THAT(Split({R"(\d)", R"(\s+(?!\S)|\s)"}, "a  1  b"),
              ElementsAre("a", "  ", "1", " ", " ", "b"));
}

TEST(PreTokenizerTest, IgnoresEmptyMatches) {
  EXPECT_THAT(Split({"b*"}, "aébc"), ElementsAre("a", "é", "b", "c"));
}

TEST(PreTokenizerTest, TakesWhiteSpaceAsUnicodeDefinesIt) {
  EXPECT_THAT(Split({R"(\s+)"}, "a\u0085\u3000b"), ElementsAre("a", "\u0085\u3000", "b"));
  EXPECT_THAT(Split({R"(\s+)"}, "a\u180Eb"), ElementsAre("a\u180Eb"));
  EXPECT_THAT(Split({R"([\S]+)"}, "a\u180Eb c"), ElementsAre("a\u180Eb", " ", "c"));
}

TEST(PreTokenizerTest, KnowsCharactersUpToUnicode16) {
  const std::string heart = "\U0001FA77";  // Unicode 15.0, a symbol
  EXPECT_THAT(Split({R"(\p{S}+)"}, "a" + heart + "b"), ElementsAre("a", heart, "b"));
  EXPECT_THAT(Split({R"([\p{P}\p{S}]+)"}, "a" + heart + "!b"), ElementsAre("a", heart + "!", "b"));
  EXPECT_THAT(Split({R"([^\p{S}x]+)"}, "ax" + heart + "b"), ElementsAre("a", "x" + heart, "b"));
  EXPECT_THAT(Split({R"(\P{S}+)"}, "a" + heart + "b"), ElementsAre("a", heart, "b"));
  EXPECT_THAT(Split({R"([]\p{S}]+)"}, "a]" + heart + "b"), ElementsAre("a", "]" + heart, "b"));
}

TEST(PreTokenizerTest, NamesTheBadPattern) {
  EXPECT_THAT(PreTokenizer::Create({"a", "b["}).status().message(),
              HasSubstr("pattern 'b[': found 'missing terminating ] for character class'"));
}

TEST(PreTokenizerTest, GivesUpOnPatternsWithoutEnd) {
  const Result<PreTokenizer> splitter = PreTokenizer::Create({"(?:a+)+b"});
  ASSERT_TRUE(splitter.ok());
  std::vector<std::string_view> pieces;
  const Status status = splitter->Split(std::string(60, 'a') + "cb", pieces);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("match limit exceeded"));
}

}  // namespace
}  // namespace deepinfer
