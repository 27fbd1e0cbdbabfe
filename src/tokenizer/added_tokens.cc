#include "tokenizer/added_tokens.h"

#include "base/check.h"

namespace deepinfer {

AddedTokenMatcher::AddedTokenMatcher() : nodes_(1), root_children_(256, -1) {}

int32_t AddedTokenMatcher::ChildOf(int32_t node, uint8_t byte) const {
  if (node == 0) return root_children_[byte];
  int32_t child = nodes_[static_cast<size_t>(node)].first_child;
  while (child >= 0 && nodes_[static_cast<size_t>(child)].byte != byte) {
    child = nodes_[static_cast<size_t>(child)].next_sibling;
  }
  return child;
}

void AddedTokenMatcher::Add(std::string_view spelling, int32_t token) {
  CHECK(!spelling.empty());
  int32_t node = 0;
  for (const char c : spelling) {
    const auto byte = static_cast<uint8_t>(c);
    int32_t child = ChildOf(node, byte);
    if (child < 0) {
      child = static_cast<int32_t>(nodes_.size());
      Node& parent = nodes_[static_cast<size_t>(node)];
      const int32_t sibling = parent.first_child;
      parent.first_child = child;
      nodes_.push_back({.byte = byte, .next_sibling = sibling});
      if (node == 0) root_children_[byte] = child;
    }
    node = child;
  }
  nodes_[static_cast<size_t>(node)].token = token;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::MatchAt(std::string_view text,
                                                                   size_t begin) const {
  std::optional<Match> longest;
  int32_t node = 0;
  for (size_t end = begin; end < text.size();) {
    node = ChildOf(node, static_cast<uint8_t>(text[end]));
    if (node < 0) break;
    ++end;
    const int32_t token = nodes_[static_cast<size_t>(node)].token;
    if (token >= 0) longest = Match{.begin = begin, .end = end, .token = token};
  }
  return longest;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::Find(std::string_view text,
                                                                size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (root_children_[static_cast<uint8_t>(text[begin])] < 0) continue;
    if (std::optional<Match> match = MatchAt(text, begin)) return match;
  }
  return std::nullopt;
}

}  // namespace deepinfer
