// Byte-pair encoding of one word: starting from single bytes, the adjacent pair with the lowest
// merge rank (leftmost on a tie) is replaced by its merged token until no pair has a rule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace deepinfer {

// Immutable after the last Add; then thread-safe.
class BpeMerger {
 public:
  // The token of every single byte.
  using ByteTokens = std::array<int32_t, 256>;

  BpeMerger() = default;
  BpeMerger(const ByteTokens& byte_tokens, size_t num_merges);

  // Rules are added in rank order, at most num_merges; a repeated pair takes its last rank.
  void Add(int32_t left, int32_t right, int32_t merged);

  // Appends the tokens of a word.  O(n log n) in its length.
  void Encode(std::string_view word, std::vector<int32_t>& out) const;

 private:
  struct Rule {
    uint64_t pair = kNoPair;
    uint32_t rank = 0;
    int32_t merged = 0;
  };
  static constexpr uint64_t kNoPair = ~uint64_t{0};

  const Rule* FindRule(int32_t left, int32_t right) const;
  size_t SlotOf(uint64_t pair) const;
  void EncodeShort(std::string_view word, std::vector<int32_t>& out) const;
  void EncodeLong(std::string_view word, std::vector<int32_t>& out) const;

  ByteTokens byte_tokens_{};
  // Hash table, linear probing, at most half full; size a power of two.
  std::vector<Rule> rules_ = std::vector<Rule>(1);
  uint32_t num_added_ = 0;
};

}  // namespace deepinfer
