// The best of many scores and of blocks of them (model.md sections 7.3 and 7.4).
#pragma once

#include "kernels/kernels.h"
#include "kernels/top_k.h"
#include "kernels/vector/lanes.h"

namespace deepinfer::vector {

// Adds the entries of one vector that are above the floor.
template <class V, class Part>
[[gnu::always_inline]] inline void AddAbove(const float* scores, int64_t at, Part part,
                                            TopK& best) {
  using F32 = typename V::F32;
  // Lanes that a part does not have are zeros; they are cut off below.
  uint32_t lanes = ToBits(F32::Load(scores + at, part) > F32::Set(best.floor()));
  if constexpr (requires { part.count; }) lanes &= (1U << part.count) - 1;
  for (; lanes != 0; lanes &= lanes - 1) {
    const int64_t i = at + __builtin_ctz(lanes);
    best.Add(RankKey(scores[i], static_cast<int32_t>(i)));
  }
}

template <class V>
void CollectBest(const float* scores, int64_t n, TopK& best) {
  using F32 = typename V::F32;
  constexpr int64_t kStep = 4 * kLanes;  // mostly none of them is above the floor
  int64_t first = 0;
  for (; first + kStep <= n; first += kStep) {
    const float* x = scores + first;
    const F32 low = Max(F32::Load(x, Whole{}), F32::Load(x + kLanes, Whole{}));
    const F32 high = Max(F32::Load(x + 2 * kLanes, Whole{}), F32::Load(x + 3 * kLanes, Whole{}));
    if (ToBits(Max(low, high) > F32::Set(best.floor())) == 0) continue;
    for (int64_t at = first; at < first + kStep; at += kLanes) {
      AddAbove<V>(scores, at, Whole{}, best);
    }
  }
  ForEachVector(n - first,
                [&](int64_t at, auto part) { AddAbove<V>(scores, first + at, part, best); });
}

template <class V>
void SelectTopK(const SelectTopKParams& p) {
  static thread_local TopK best;
  best.Start(int64_t{p.top_k} + 1, p.scores, p.num_scores);  // one more, for the margin
  CollectBest<V>(p.scores, p.num_scores, best);
  const auto [keys, found] = best.Finish();
  const int64_t kept = found < p.top_k ? found : p.top_k;
  if (p.margin != nullptr) {
    *p.margin = __builtin_inff();
    if (kept < found) {
      uint64_t worst = keys[0];
      for (int64_t i = 1; i < kept; ++i) worst = keys[i] > worst ? keys[i] : worst;
      *p.margin = p.scores[IndexOf(worst)] - p.scores[IndexOf(keys[kept])];
    }
  }
  SortIndices(keys, kept, p.selected);
  *p.num_selected = static_cast<int32_t>(kept);
}

// Largest of n scores; the sign of a zero is lost.
template <class V>
[[gnu::always_inline]] inline float MaxScore(const float* scores, int64_t n) {
  using F32 = typename V::F32;
  F32 max = F32::Set(-__builtin_inff());
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) max = Max(F32::Load(scores + at, Whole{}), max);
  float largest = MaxLane(max);
  for (; at < n; ++at) largest = scores[at] > largest ? scores[at] : largest;
  return largest + 0.0f;
}

template <class V>
void CandidateBlocks(const CandidateBlocksParams& p) {
  const int64_t count = (p.num_scores + p.block_size - 1) / p.block_size;
  for (int64_t block = 0; block + 1 < count; ++block) {
    p.block_scores[block] = MaxScore<V>(p.scores + block * p.block_size, p.block_size);
  }
  p.block_scores[count - 1] = __builtin_inff();  // the newest entry's
  SelectTopK<V>({.scores = p.block_scores,
                 .num_scores = count,
                 .top_k = p.top_blocks,
                 .selected = p.blocks,
                 .num_selected = p.num_blocks,
                 .order = p.order,
                 .margin = p.margin});
}

}  // namespace deepinfer::vector
