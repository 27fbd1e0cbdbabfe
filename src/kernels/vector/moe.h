// Routing and the gated activation of experts (model.md section 8).
#pragma once

#include "kernels/kernels.h"
#include "kernels/vector/lanes.h"
#include "kernels/vector/math.h"
#include "kernels/workspace.h"

namespace deepinfer::vector {

// The best experts so far, best first.
struct Ranking {
  int32_t* experts;
  float* keys;
  int64_t count;
  int64_t capacity;

  // Experts come in ascending order, so that among equals the earlier is better.
  [[gnu::always_inline]] void Add(int32_t expert, float key) {
    if (count == capacity && !(key > keys[count - 1])) return;
    int64_t at = count < capacity ? count++ : count - 1;
    for (; at > 0 && key > keys[at - 1]; --at) {
      keys[at] = keys[at - 1];
      experts[at] = experts[at - 1];
    }
    keys[at] = key;
    experts[at] = expert;
  }
};

// Affinities sqrt(softplus(logit)), and the same with the bias.
template <class V>
void ScoreExperts(const RouteParams& p, int64_t row, float* score, float* biased) {
  using F32 = typename V::F32;
  const float* logits = p.logits + row * p.num_experts;
  const float* bias = p.is_image[row] != 0 ? p.bias_image : p.bias;
  ForEachVector(p.num_experts, [&](int64_t at, auto part) {
    const F32 s = Sqrt(PreciseSoftplus<V>(F32::Load(logits + at, part)));
    s.Store(score + at, part);
    (s + F32::Load(bias + at, part)).Store(biased + at, part);
  });
}

// The `ranking.capacity` best of n keys.
template <class V>
void RankExperts(const float* keys, int64_t n, Ranking& ranking) {
  using F32 = typename V::F32;
  ForEachVector(n, [&](int64_t at, auto part) {
    // A full ranking only changes for a key above its last.
    const float last =
        ranking.count < ranking.capacity ? -__builtin_inff() : ranking.keys[ranking.count - 1];
    const bool full = ranking.count == ranking.capacity;
    uint32_t lanes = ToBits(F32::Load(keys + at, part) > F32::Set(last));
    if (!full) lanes = 0xFFFF;
    const int64_t left = n - at;
    if (left < kLanes) lanes &= (1U << left) - 1;
    for (; lanes != 0; lanes &= lanes - 1) {
      const auto i = static_cast<int32_t>(at) + __builtin_ctz(lanes);
      ranking.Add(i, keys[i]);
    }
  });
}

template <class V>
void WeighExperts(const RouteParams& p, int64_t row, const float* score, const Ranking& ranking) {
  int32_t* experts = p.experts + row * p.top_k;
  float* weights = p.weights + row * p.top_k;
  for (int64_t j = 0; j < p.top_k; ++j) {
    experts[j] = ranking.experts[j];
    weights[j] = score[experts[j]];
  }
  auto sum = V::F64::Zero();
  ForEachVector(p.top_k, [&](int64_t at, auto part) {
    sum = AddTerms<V>(sum, V::F32::Load(weights + at, part));
  });
  const float total = SumTree(sum) + 1e-20f;
  for (int64_t j = 0; j < p.top_k; ++j) {
    if (p.top_k > 1) weights[j] /= total;
    weights[j] *= p.scale;
  }
  if (p.margins == nullptr) return;
  p.margins[row] = ranking.count > p.top_k ? ranking.keys[p.top_k - 1] - ranking.keys[p.top_k]
                                           : __builtin_inff();
}

template <class V>
void Route(const RouteParams& p, int64_t begin, int64_t end) {
  static thread_local Workspace workspace;
  const int64_t n = p.num_experts;
  // One more than is kept is ranked, for the margin.
  const int64_t ranked = p.top_k < n ? p.top_k + 1 : n;
  auto* score =
      static_cast<float*>(workspace.Get(static_cast<size_t>(2 * n + 2 * ranked) * sizeof(float)));
  float* biased = score + n;
  float* keys = biased + n;
  auto* experts = reinterpret_cast<int32_t*>(keys + ranked);
  for (int64_t row = begin; row < end; ++row) {
    ScoreExperts<V>(p, row, score, biased);
    Ranking ranking{.experts = experts, .keys = keys, .count = 0, .capacity = ranked};
    RankExperts<V>(biased, n, ranking);
    WeighExperts<V>(p, row, score, ranking);
  }
}

template <class V>
void Swiglu(const SwigluParams& p, int64_t begin, int64_t end) {
  using F32 = typename V::F32;
  const F32 limit = F32::Set(p.limit);
  const F32 lowest = F32::Set(-p.limit);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = row * p.dim;
    const F32 weight = F32::Set(p.row_weight != nullptr ? p.row_weight[row] : 1.0f);
    ForEachVector(p.dim, [&](int64_t at, auto part) {
      const F32 gate = Min(limit, F32::Load(p.gate + first + at, part));
      const F32 up = Min(limit, Max(lowest, F32::Load(p.up + first + at, part)));
      F32 y = SiluF32<V>(gate) * up;
      if (p.row_weight != nullptr) y = y * weight;
      Round<V>(y, p.round).Store(p.y + first + at, part);
    });
  }
}

}  // namespace deepinfer::vector
