// Finds added tokens in text: at every place the longest one that begins there, from left to right.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace deepinfer {

// A byte trie.  Immutable once built.
class AddedTokenTrie {
 public:
  void Insert(std::string_view content, int32_t id);

  struct Match {
    int32_t id;
    size_t length;
  };
  // The longest token that `text` begins with.
  std::optional<Match> LongestPrefix(std::string_view text) const;
  // Whether any token begins with this byte; a quick test before LongestPrefix.
  bool MayBegin(unsigned char byte) const { return begins_[byte]; }

 private:
  static uint64_t Edge(uint32_t node, unsigned char byte) { return uint64_t{node} << 8 | byte; }

  std::unordered_map<uint64_t, uint32_t> edges_;  // (node, byte) -> node; 0 is the root
  std::unordered_map<uint32_t, int32_t> ends_;    // node -> id
  uint32_t num_nodes_ = 1;
  bool begins_[256] = {};
};

}  // namespace deepinfer
