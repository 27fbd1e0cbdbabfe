#include "tokenizer/added_tokens.h"

namespace deepinfer {

void AddedTokenTrie::Insert(std::string_view content, int32_t id) {
  if (content.empty()) return;
  begins_[static_cast<unsigned char>(content[0])] = true;
  uint32_t node = 0;
  for (const char c : content) {
    const auto [edge, added] =
        edges_.try_emplace(Edge(node, static_cast<unsigned char>(c)), num_nodes_);
    if (added) ++num_nodes_;
    node = edge->second;
  }
  ends_[node] = id;
}

std::optional<AddedTokenTrie::Match> AddedTokenTrie::LongestPrefix(std::string_view text) const {
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto edge = edges_.find(Edge(node, static_cast<unsigned char>(text[i])));
    if (edge == edges_.end()) break;
    node = edge->second;
    const auto end = ends_.find(node);
    if (end != ends_.end()) longest = Match{.id = end->second, .length = i + 1};
  }
  return longest;
}

}  // namespace deepinfer
