#include "tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace deepinfer {
namespace {

struct Merge {
  int32_t left;
  int32_t right;
  int32_t merged;
};

// The definition: while a rule applies, apply the first of the list at its leftmost place.
std::vector<int32_t> MergeByDefinition(std::vector<int32_t> tokens,
                                       const std::vector<Merge>& merges) {
  for (;;) {
    bool changed = false;
    for (const Merge& merge : merges) {
      const auto at = std::adjacent_find(tokens.begin(), tokens.end(), [&](int32_t a, int32_t b) {
        return a == merge.left && b == merge.right;
      });
      if (at == tokens.end()) continue;
      *at = merge.merged;
      tokens.erase(at + 1);
      changed = true;
      break;
    }
    if (!changed) return tokens;
  }
}

BpeMerger::ByteTokens IdentityBytes() {
  BpeMerger::ByteTokens tokens;
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i);
  return tokens;
}

// Rules over a two-letter alphabet, so that words are full of competing merges.
std::vector<Merge> RandomMerges(std::mt19937& random) {
  std::vector<int32_t> known = {'a', 'b'};
  std::vector<Merge> merges;
  for (int32_t next = 256; next < 286; ++next) {
    const int32_t left = known[random() % known.size()];
    const int32_t right = known[random() % known.size()];
    const bool repeated = std::any_of(merges.begin(), merges.end(), [&](const Merge& merge) {
      return merge.left == left && merge.right == right;
    });
    if (repeated) continue;
    merges.push_back({left, right, next});
    known.push_back(next);
  }
  return merges;
}

TEST(BpeMergerTest, MergesShortAndLongWordsAsTheDefinitionSays) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Merge> merges = RandomMerges(random);
    BpeMerger merger(IdentityBytes(), merges.size());
    for (const Merge& merge : merges) merger.Add(merge.left, merge.right, merge.merged);
    for (const size_t length : {0, 1, 2, 7, 47, 48, 49, 50, 150}) {
      std::string word(length, 'a');
      for (char& c : word) c = random() % 3 == 0 ? 'b' : 'a';
      std::vector<int32_t> tokens;
      merger.Encode(word, tokens);
      ASSERT_EQ(tokens, MergeByDefinition({word.begin(), word.end()}, merges)) << word;
    }
  }
}

TEST(BpeMergerTest, AppendsToWhatIsThere) {
  const BpeMerger merger(IdentityBytes(), 0);
  std::vector<int32_t> tokens = {7};
  merger.Encode("ab", tokens);
  EXPECT_EQ(tokens, (std::vector<int32_t>{7, 'a', 'b'}));
}

TEST(BpeMergerTest, TakesTheLastRankOfARepeatedPair) {
  BpeMerger merger(IdentityBytes(), 3);
  merger.Add('a', 'b', 256);
  merger.Add('b', 'c', 257);
  merger.Add('a', 'b', 256);
  std::vector<int32_t> tokens;
  merger.Encode("abc", tokens);
  EXPECT_EQ(tokens, (std::vector<int32_t>{'a', 257}));
}

}  // namespace
}  // namespace deepinfer
