// Finds added tokens ("<｜User｜>", "</think>", ...) in raw text: atomically, leftmost first and
// the longest of those that start at one place (prompt_format.md section 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace deepinfer {

// Immutable after the last Add; then thread-safe.
class AddedTokenMatcher {
 public:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    int32_t token = 0;
  };

  AddedTokenMatcher();
  // Precondition: spelling is not empty.  A repeated spelling takes its last token.
  void Add(std::string_view spelling, int32_t token);

  // The first match inside text that starts at or after `from`.
  std::optional<Match> Find(std::string_view text, size_t from) const;

 private:
  // A tree over bytes; the children of a node are a list linked through next_sibling.
  struct Node {
    uint8_t byte = 0;
    int32_t first_child = -1;
    int32_t next_sibling = -1;
    int32_t token = -1;  // of the spelling that ends here
  };

  int32_t ChildOf(int32_t node, uint8_t byte) const;
  std::optional<Match> MatchAt(std::string_view text, size_t begin) const;

  std::vector<Node> nodes_;             // nodes_[0] is the root
  std::vector<int32_t> root_children_;  // [256] by byte, -1: none
};

}  // namespace deepinfer
