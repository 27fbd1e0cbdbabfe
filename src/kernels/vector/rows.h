// Cached rows: quantising them (tensor/row_codec.h), and pooling the tokens of a compressed entry.
#pragma once

#include "kernels/kernels.h"
#include "kernels/vector/fp8.h"
#include "kernels/vector/lanes.h"
#include "kernels/vector/math.h"

namespace deepinfer::vector {

// Largest magnitude of the lanes, at most the largest finite number; NaN counts as nothing.
template <class V>
[[gnu::always_inline]] inline float MaxMagnitude(typename V::F32 magnitudes) {
  using F32 = typename V::F32;
  return MaxLane(Min(Max(magnitudes, F32::Zero()), F32::Set(0x1.fffffep+127f)));
}

// The quantisers of tensor/quant.h: scale codes from the largest magnitude of a group.
[[gnu::always_inline]] inline uint8_t Fp8ScaleOf(float largest) {
  return CeilPowerOfTwoCode((largest > 1e-4f ? largest : 1e-4f) * (1.0f / 448.0f));
}
[[gnu::always_inline]] inline uint8_t Fp4ScaleOf(float largest) {
  constexpr float kSmallest = 6 * 0x1p-126f;
  return CeilPowerOfTwoCode((largest > kSmallest ? largest : kSmallest) * (1.0f / 6.0f));
}

template <class V>
void EncodeFp8Row(const float* x, int64_t dim, uint8_t* out) {
  using F32 = typename V::F32;
  for (int64_t at = 0; at < dim; at += 32) {
    const F32 low = F32::Load(x + at, Whole{});
    const F32 high = F32::Load(x + at + kLanes, Whole{});
    const F32 largest = Max(Abs(high), Max(Abs(low), F32::Zero()));
    const uint8_t scale = Fp8ScaleOf(MaxMagnitude<V>(largest));
    const F32 divisor = F32::Set(E8M0ToFloat(scale));
    Encode<E4M3, V>(low / divisor).StoreBytes(out + at);
    Encode<E4M3, V>(high / divisor).StoreBytes(out + at + kLanes);
    out[dim + at / 32] = scale;
  }
}

template <class V>
void EncodeFp4Row(const float* x, int64_t dim, uint8_t* out) {
  using F32 = typename V::F32;
  for (int64_t at = 0; at < dim; at += 32) {
    const F32 low = F32::Load(x + at, Whole{});
    const F32 high = F32::Load(x + at + kLanes, Whole{});
    const F32 largest = Max(Abs(high), Max(Abs(low), F32::Zero()));
    const uint8_t scale = Fp4ScaleOf(MaxMagnitude<V>(largest));
    const F32 divisor = F32::Set(E8M0ToFloat(scale));
    Encode<E2M1, V>(low / divisor).StoreNibbles(out + at / 2);
    Encode<E2M1, V>(high / divisor).StoreNibbles(out + at / 2 + kLanes / 2);
    out[dim / 2 + at / 32] = scale;
  }
}

// Groups of 16; the scales are e4m3, sixteen of them encoded and decoded at a time.
template <class V>
void EncodeLatentRow(const float* x, int64_t dim, uint8_t* out) {
  using F32 = typename V::F32;
  for (int64_t first = 0; first < dim; first += kLanes * kLanes) {
    const int64_t left = (dim - first) / kLanes;
    const int64_t groups = left < kLanes ? left : kLanes;
    alignas(64) float scales[kLanes] = {};
    for (int64_t g = 0; g < groups; ++g) {
      scales[g] = MaxMagnitude<V>(Abs(F32::Load(x + first + g * kLanes, Whole{})));
    }
    const F32 largest = Max(F32::Load(scales, Whole{}), F32::Set(6 * 0x1p-9f));
    const auto codes = Encode<E4M3, V>(Min(largest / F32::Set(6.0f), F32::Set(448.0f)));
    DecodeE4M3<V>(codes).Store(scales, Whole{});
    alignas(16) uint8_t bytes[kLanes];
    codes.StoreBytes(bytes);
    __builtin_memcpy(out + dim / 2 + first / kLanes, bytes, static_cast<size_t>(groups));
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t at = first + g * kLanes;
      const F32 value = F32::Load(x + at, Whole{}) / F32::Set(scales[g]);
      Encode<E2M1, V>(value).StoreNibbles(out + at / 2);
    }
  }
}

template <class V>
void StoreRows(const StoreRowsParams& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.x_stride;
    auto* out = reinterpret_cast<uint8_t*>(p.out[row]);
    switch (p.format) {
      case RowFormat::kF32:
        __builtin_memcpy(out, x, static_cast<size_t>(p.dim) * sizeof(float));
        break;
      case RowFormat::kFp8E8M0:
        EncodeFp8Row<V>(x, p.dim, out);
        break;
      case RowFormat::kFp4E8M0:
        EncodeFp4Row<V>(x, p.dim, out);
        break;
      case RowFormat::kFp4E4M3:
        EncodeLatentRow<V>(x, p.dim, out);
        break;
    }
  }
}

// Sixteen channels' sums over tokens: fp64 lane t mod 8 takes token t.
template <class V>
struct ChannelSums {
  typename V::F64 low[kSumLanes];
  typename V::F64 high[kSumLanes];

  [[gnu::always_inline]] ChannelSums() {
    for (int i = 0; i < kSumLanes; ++i) low[i] = high[i] = V::F64::Zero();
  }
  [[gnu::always_inline]] void Add(int token, typename V::F32 terms) {
    const int i = token % kSumLanes;
    low[i] = low[i] + Low(terms);
    high[i] = high[i] + High(terms);
  }
  [[gnu::always_inline]] typename V::F32 Total() {
    for (int width = kSumLanes / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) {
        low[i] = low[i] + low[i + width];
        high[i] = high[i] + high[i + width];
      }
    }
    return Narrow(low[0], high[0]);
  }
};

template <class V>
void PoolGroups(const PoolGroupsParams& p, int64_t begin, int64_t end) {
  using F32 = typename V::F32;
  alignas(64) float weights[128][kLanes];
  for (int64_t entry = begin; entry < end; ++entry) {
    const float* const* ug = p.ug + entry * p.ratio;
    float* y = p.y + entry * p.dim;
    ForEachVector(p.dim, [&](int64_t at, auto part) {
      F32 max = F32::Load(ug[0] + p.dim + at, part);
      for (int t = 1; t < p.ratio; ++t) max = Max(F32::Load(ug[t] + p.dim + at, part), max);
      ChannelSums<V> sum;
      for (int t = 0; t < p.ratio; ++t) {
        const F32 weight = PreciseExp<V>(F32::Load(ug[t] + p.dim + at, part) - max);
        weight.Store(weights[t], Whole{});
        sum.Add(t, weight);
      }
      const F32 total = sum.Total();
      ChannelSums<V> pooled;
      for (int t = 0; t < p.ratio; ++t) {
        const F32 share = F32::Load(weights[t], Whole{}) / total;
        pooled.Add(t, F32::Load(ug[t] + at, part) * share);
      }
      Round<V>(pooled.Total(), p.round).Store(y + at, part);
    });
  }
}

}  // namespace deepinfer::vector
