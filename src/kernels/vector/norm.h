// Embedding, RMSNorm, rotary positions, and small elementwise ops.
#pragma once

#include "kernels/kernels.h"
#include "kernels/vector/fp8.h"
#include "kernels/vector/lanes.h"
#include "kernels/workspace.h"

namespace deepinfer::vector {

template <class V>
void Embed(const EmbedParams& p, int64_t begin, int64_t end) {
  using F32 = typename V::F32;
  for (int64_t row = begin; row < end; ++row) {
    const uint16_t* source = p.override_rows != nullptr ? p.override_rows[row] : nullptr;
    if (source == nullptr) source = p.table + p.ids[row] * p.dim;
    float* out = p.out + row * p.num_streams * p.dim;
    ForEachVector(p.dim, [&](int64_t at, auto part) {
      const F32 x = F32::LoadBf16(source + at, part);
      for (int s = 0; s < p.num_streams; ++s) x.Store(out + s * p.dim + at, part);
    });
  }
}

// kRows rows side by side: the sum of a row is one chain of additions, too slow on its own.
template <class V, int kRows>
[[gnu::always_inline]] inline void NormalizeRows(const RmsNormParams& p, int64_t first) {
  using F32 = typename V::F32;
  const float* x = p.x + first * p.x_stride;
  typename V::F64 sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = V::F64::Zero();
  ForEachVector(p.dim, [&](int64_t at, auto part) {
    for (int r = 0; r < kRows; ++r) {
      const F32 value = F32::Load(x + r * p.x_stride + at, part);
      sum[r] = AddProducts<V>(sum[r], value, value);
    }
  });
  for (int r = 0; r < kRows; ++r) {
    const F32 inverse = F32::Set(InverseRms(SumTree(sum[r]), p.dim, p.eps));
    const float* row = x + r * p.x_stride;
    float* y = p.y + (first + r) * p.dim;
    ForEachVector(p.dim, [&](int64_t at, auto part) {
      const F32 weight = F32::LoadBf16(p.weight + at, part);
      Round<V>(weight * (F32::Load(row + at, part) * inverse), p.round).Store(y + at, part);
    });
  }
}

template <class V>
void RmsNorm(const RmsNormParams& p, int64_t begin, int64_t end) {
  constexpr int kRows = 4;
  int64_t row = begin;
  for (; row + kRows <= end; row += kRows) NormalizeRows<V, kRows>(p, row);
  for (; row < end; ++row) NormalizeRows<V, 1>(p, row);
}

// What the pairs (a, b) of a row's lanes are multiplied with: a becomes a*c + b*(-s), b becomes
// b*c + a*s.
struct RotaryFactors {
  float* cos;  // [rope_dim] c, c of every pair
  float* sin;  // [rope_dim] -s, s of every pair; s, -s to rotate back
};

template <class V>
void LoadFactors(const RopeParams& p, int64_t row, const RotaryFactors& out) {
  using F32 = typename V::F32;
  using I32 = typename V::I32;
  static constexpr uint32_t kMinus = 0x80000000;
  static constexpr uint32_t kFlips[kLanes + 1] = {kMinus, 0, kMinus, 0, kMinus, 0,
                                                  kMinus, 0, kMinus, 0, kMinus, 0,
                                                  kMinus, 0, kMinus, 0, kMinus};
  const I32 flips = I32::Load(kFlips + (p.inverse ? 1 : 0), Whole{});
  const int64_t first = row * (p.rope_dim / 2);
  ForEachVector(p.rope_dim, [&](int64_t at, auto part) {
    F32::LoadTwice(p.cos + first + at / 2, part).Store(out.cos + at, part);
    const F32 sin = F32::LoadTwice(p.sin + first + at / 2, part);
    FromBits(Bits(sin) + flips).Store(out.sin + at, part);
  });
}

template <class V>
void Rope(const RopeParams& p, int64_t begin, int64_t end) {
  using F32 = typename V::F32;
  static thread_local Workspace workspace;
  auto* memory =
      static_cast<float*>(workspace.Get(static_cast<size_t>(2 * p.rope_dim) * sizeof(float)));
  const RotaryFactors factors{memory, memory + p.rope_dim};
  for (int64_t row = begin; row < end; ++row) {
    LoadFactors<V>(p, row, factors);
    for (int64_t head = 0; head < p.heads; ++head) {
      float* x = p.x + (row * p.heads + head + 1) * p.dim - p.rope_dim;
      ForEachVector(p.rope_dim, [&](int64_t at, auto part) {
        const F32 pairs = F32::Load(x + at, part);
        const F32 straight = pairs * F32::Load(factors.cos + at, part);
        const F32 crossed = SwapPairs(pairs) * F32::Load(factors.sin + at, part);
        Round<V>(straight + crossed, p.round).Store(x + at, part);
      });
    }
  }
}

template <class V>
void AddRows(const AddRowsParams& p, int64_t begin, int64_t end) {
  using F32 = typename V::F32;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.dim;
    float* y = p.y + (p.index != nullptr ? p.index[row] : row) * p.dim;
    ForEachVector(p.dim, [&](int64_t at, auto part) {
      (F32::Load(y + at, part) + F32::Load(x + at, part)).Store(y + at, part);
    });
  }
}

template <class V>
void Scale(const ScaleParams& p, int64_t begin, int64_t end) {
  using F32 = typename V::F32;
  const F32 factor = F32::Set(p.factor);
  float* x = p.x + begin;
  ForEachVector(end - begin, [&](int64_t at, auto part) {
    Round<V>(F32::Load(x + at, part) * factor, p.round).Store(x + at, part);
  });
}

template <class V>
void DecodeFp8Rows(const DecodeFp8RowsParams& p, int64_t begin, int64_t end) {
  using F32 = typename V::F32;
  using I32 = typename V::I32;
  // Rows have no padding: dim is a multiple of 32.
  for (int64_t at = begin * p.dim; at < end * p.dim; at += 32) {
    const F32 scale = F32::Set(E8M0ToFloat(p.scales[at / 32]));
    for (int64_t half = at; half < at + 32; half += kLanes) {
      const I32 codes = I32::LoadBytes(p.codes + half, Whole{});
      (DecodeE4M3<V>(codes) * scale).Store(p.y + half, Whole{});
    }
  }
}

}  // namespace deepinfer::vector
