// The k best of many scores, for kernels of any instruction set: they find the few scores that can
// still matter, this keeps them.  Out of line: see workspace.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/workspace.h"

namespace deepinfer {

// Orders entries by score, descending, then by index, ascending: the smaller key is the better
// entry.  Equal scores (also zeros of both signs, and subnormal ones where they are flushed) give
// equal upper halves.
[[gnu::always_inline]] inline uint64_t RankKey(float score, int32_t index) {
  const auto bits = __builtin_bit_cast(uint32_t, score + 0.0f);  // -0 becomes +0
  const uint32_t ascending = (bits & 0x80000000) != 0 ? ~bits : bits | 0x80000000;
  return uint64_t{~ascending} << 32 | static_cast<uint32_t>(index);
}
[[gnu::always_inline]] inline int32_t IndexOf(uint64_t key) {
  return static_cast<int32_t>(static_cast<uint32_t>(key));
}

// Not thread-safe: one per thread.  Keeps its memory.
class TopK {
 public:
  TopK();
  ~TopK();
  // Starts over: the `keep` best of `scores` [count] will be wanted, keep >= 1.  The scores are
  // borrowed until Finish.
  void Start(int64_t keep, const float* scores, int64_t count);

  // Entries come with ascending indices, so that one whose score is not above `floor()` cannot
  // matter; -inf is below every floor.
  [[gnu::always_inline]] float floor() const { return floor_; }
  [[gnu::always_inline]] void Add(uint64_t key) {
    keys_[count_++] = key;
    if (count_ == capacity_) MakeRoom();
  }

  // The best, at most `keep` of them, in no order but that the worst is last when there are `keep`.
  // Valid until the next call.
  struct Best {
    uint64_t* keys;
    int64_t count;
  };
  Best Finish();

 private:
  void Prune();
  void MakeRoom();
  void RaiseFloor(int64_t next);

  Workspace memory_;
  uint64_t* keys_ = nullptr;
  float* samples_ = nullptr;
  const float* scores_ = nullptr;
  int64_t num_scores_ = 0;
  int64_t seen_ = 0;  // scores before the one that was last made room for
  int64_t keep_ = 0;
  int64_t count_ = 0;
  int64_t capacity_ = 0;
  float floor_ = 0;
};

// Writes the indices of `count` keys, ascending.
void SortIndices(const uint64_t* keys, int64_t count, int32_t* indices);

}  // namespace deepinfer
