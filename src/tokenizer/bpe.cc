#include "tokenizer/bpe.h"

#include <bit>
#include <functional>
#include <queue>
#include <tuple>

namespace deepinfer {
namespace {

uint64_t KeyOf(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// A symbol of the piece in a doubly linked list over indices; id -1: merged away.
struct Symbol {
  int32_t id;
  int32_t previous;
  int32_t next;
};

// A merge that was possible when it was queued.
struct Candidate {
  int32_t rank;
  int32_t at;    // index of the left symbol
  int32_t left;  // ids at that time, to recognise a stale entry
  int32_t right;
  int32_t merged;

  bool operator>(const Candidate& other) const {
    return std::tie(rank, at) > std::tie(other.rank, other.at);
  }
};

using Queue = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;

void Offer(const std::vector<Symbol>& symbols, const MergeTable& merges, int32_t at, Queue& queue) {
  if (at < 0) return;
  const Symbol& left = symbols[static_cast<size_t>(at)];
  if (left.next < 0) return;
  const int32_t right = symbols[static_cast<size_t>(left.next)].id;
  const MergeTable::Merge merge = merges.Find(left.id, right);
  if (merge.rank >= 0) queue.push({merge.rank, at, left.id, right, merge.id});
}

}  // namespace

MergeTable::MergeTable(size_t count) : slots_(std::bit_ceil(2 * count + 2)) {}

size_t MergeTable::SlotOf(uint64_t key) const {
  // Fibonacci hashing: the high bits of the product mix all of the key.
  uint64_t hash = key * 0x9E3779B97F4A7C15ull;
  hash ^= hash >> 32;
  return hash & (slots_.size() - 1);
}

void MergeTable::Insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = KeyOf(left, right);
  size_t at = SlotOf(key);
  while (slots_[at].key != kEmpty) {
    if (slots_[at].key == key) return;
    at = (at + 1) & (slots_.size() - 1);
  }
  slots_[at] = {key, merge};
}

MergeTable::Merge MergeTable::Find(int32_t left, int32_t right) const {
  const uint64_t key = KeyOf(left, right);
  size_t at = SlotOf(key);
  while (slots_[at].key != kEmpty) {
    if (slots_[at].key == key) return slots_[at].merge;
    at = (at + 1) & (slots_.size() - 1);
  }
  return {};
}

void EncodePiece(std::string_view piece, const std::array<int32_t, 256>& byte_ids,
                 const MergeTable& merges, std::vector<int32_t>& out) {
  const auto count = static_cast<int32_t>(piece.size());
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols.push_back({byte_ids[static_cast<unsigned char>(piece[static_cast<size_t>(i)])], i - 1,
                       i + 1 < count ? i + 1 : -1});
  }
  Queue queue;
  for (int32_t i = 0; i + 1 < count; ++i) Offer(symbols, merges, i, queue);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<size_t>(best.at)];
    if (left.id != best.left || left.next < 0) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != best.right) continue;
    left.id = best.merged;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = best.at;
    Offer(symbols, merges, left.previous, queue);
    Offer(symbols, merges, best.at, queue);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.id >= 0) out.push_back(symbol.id);
  }
}

}  // namespace deepinfer
