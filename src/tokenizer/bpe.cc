#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>

namespace deepinfer {
namespace {

// Up to this length a scan for the best pair beats a heap; words of ordinary text are shorter.
constexpr size_t kShortWord = 48;
constexpr uint32_t kNoRank = ~uint32_t{0};

uint64_t PairOf(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// A token of a long word, linked to its neighbours by index; merged-away ones have length 0.
struct Piece {
  int32_t token;
  uint32_t length;
  int32_t previous;
  int32_t next;
};

struct Candidate {
  uint32_t rank;
  int32_t at;       // index of the left piece
  int32_t merged;   // the token it would become
  uint32_t length;  // of both pieces together: tells whether they are still the ones meant

  // std::priority_queue yields its largest element.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

}  // namespace

BpeMerger::BpeMerger(const ByteTokens& byte_tokens, size_t num_merges)
    : byte_tokens_(byte_tokens), rules_(std::bit_ceil(2 * num_merges + 1)) {}

size_t BpeMerger::SlotOf(uint64_t pair) const {
  const size_t mask = rules_.size() - 1;
  // Fibonacci hashing: the upper bits of the product depend on all bits of the pair.
  size_t slot = (pair * 0x9E3779B97F4A7C15u >> 32) & mask;
  while (rules_[slot].pair != kNoPair && rules_[slot].pair != pair) slot = (slot + 1) & mask;
  return slot;
}

void BpeMerger::Add(int32_t left, int32_t right, int32_t merged) {
  const uint64_t pair = PairOf(left, right);
  rules_[SlotOf(pair)] = {.pair = pair, .rank = num_added_, .merged = merged};
  ++num_added_;
}

const BpeMerger::Rule* BpeMerger::FindRule(int32_t left, int32_t right) const {
  const Rule& rule = rules_[SlotOf(PairOf(left, right))];
  return rule.pair == kNoPair ? nullptr : &rule;
}

void BpeMerger::Encode(std::string_view word, std::vector<int32_t>& out) const {
  if (word.size() <= kShortWord) {
    EncodeShort(word, out);
  } else {
    EncodeLong(word, out);
  }
}

void BpeMerger::EncodeShort(std::string_view word, std::vector<int32_t>& out) const {
  std::array<int32_t, kShortWord> tokens;
  std::array<uint32_t, kShortWord> ranks;    // of the pair (i, i + 1)
  std::array<int32_t, kShortWord> merged{};  // what that pair becomes
  size_t count = word.size();
  for (size_t i = 0; i < count; ++i) tokens[i] = byte_tokens_[static_cast<uint8_t>(word[i])];
  const auto look_up = [&](size_t i) {
    const Rule* rule = i + 1 < count ? FindRule(tokens[i], tokens[i + 1]) : nullptr;
    ranks[i] = rule != nullptr ? rule->rank : kNoRank;
    if (rule != nullptr) merged[i] = rule->merged;
  };
  for (size_t i = 0; i < count; ++i) look_up(i);
  while (count > 1) {
    const auto best =
        static_cast<size_t>(std::min_element(ranks.begin(), ranks.begin() + count) - ranks.begin());
    if (ranks[best] == kNoRank) break;
    tokens[best] = merged[best];
    std::copy(tokens.begin() + best + 2, tokens.begin() + count, tokens.begin() + best + 1);
    std::copy(ranks.begin() + best + 2, ranks.begin() + count, ranks.begin() + best + 1);
    std::copy(merged.begin() + best + 2, merged.begin() + count, merged.begin() + best + 1);
    --count;
    look_up(best);
    if (best > 0) look_up(best - 1);
  }
  out.insert(out.end(), tokens.begin(), tokens.begin() + count);
}

void BpeMerger::EncodeLong(std::string_view word, std::vector<int32_t>& out) const {
  const auto count = static_cast<int32_t>(word.size());
  std::vector<Piece> pieces(word.size());
  for (int32_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    pieces[at] = {.token = byte_tokens_[static_cast<uint8_t>(word[at])],
                  .length = 1,
                  .previous = i - 1,
                  .next = i + 1 < count ? i + 1 : -1};
  }
  std::vector<Candidate> storage;
  storage.reserve(word.size());
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(storage));
  const auto offer = [&](int32_t at) {
    if (at < 0) return;
    const Piece& left = pieces[static_cast<size_t>(at)];
    if (left.next < 0) return;
    const Piece& right = pieces[static_cast<size_t>(left.next)];
    const Rule* rule = FindRule(left.token, right.token);
    if (rule != nullptr) queue.push({rule->rank, at, rule->merged, left.length + right.length});
  };
  for (int32_t i = 0; i < count; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Piece& left = pieces[static_cast<size_t>(best.at)];
    if (left.length == 0 || left.next < 0) continue;
    Piece& right = pieces[static_cast<size_t>(left.next)];
    if (left.length + right.length != best.length) continue;
    left.token = best.merged;
    left.length = best.length;
    left.next = right.next;
    right.length = 0;
    if (left.next >= 0) pieces[static_cast<size_t>(left.next)].previous = best.at;
    offer(left.previous);
    offer(best.at);
  }
  for (int32_t at = 0; at >= 0; at = pieces[static_cast<size_t>(at)].next) {
    out.push_back(pieces[static_cast<size_t>(at)].token);
  }
}

}  // namespace deepinfer
