// Hyper-connections (model.md section 5) and the n-gram gate (section 9.3), which reads the same
// streams.
#pragma once

#include "kernels/kernels.h"
#include "kernels/scalar/scalar.h"
#include "kernels/vector/lanes.h"
#include "kernels/vector/math.h"

namespace deepinfer::vector {

inline constexpr int kMaxStreams = 8;

// Calls body.operator()<S>() for S = streams.
template <class Body>
[[gnu::always_inline]] inline void WithStreams(int streams, const Body& body) {
  switch (streams) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<3>();
    case 4:
      return body.template operator()<4>();
    case 5:
      return body.template operator()<5>();
    case 6:
      return body.template operator()<6>();
    case 7:
      return body.template operator()<7>();
    case 8:
      return body.template operator()<8>();
    default:
      return;
  }
}

// The lane tree over kStreams values that are one term of a sum each.
template <class F64, int kStreams>
[[gnu::always_inline]] inline F64 StreamTree(F64 (&lane)[kStreams]) {
  for (int width = kMaxStreams / 2; width > 0; width /= 2) {
    for (int i = 0; i < width && i + width < kStreams; ++i) lane[i] = lane[i] + lane[i + width];
  }
  // A sum starts at +0, so that it is -0 never.
  return lane[0] + F64::Zero();
}

// sum over j of weight[j] * x[j], products rounded to fp32.
template <class V, int kStreams>
[[gnu::always_inline]] inline typename V::F32 MixStreams(
    const typename V::F32 (&x)[kStreams], const typename V::F32 (&weight)[kStreams]) {
  typename V::F64 low[kStreams];
  typename V::F64 high[kStreams];
  for (int j = 0; j < kStreams; ++j) {
    const typename V::F32 product = weight[j] * x[j];
    low[j] = Low(product);
    high[j] = High(product);
  }
  return Narrow(StreamTree(low), StreamTree(high));
}

template <class V, int kStreams>
void HcPreRow(const HcPreParams& p, int64_t row) {
  using F32 = typename V::F32;
  const float* h = p.h + row * kStreams * p.dim;
  float* y = p.y + row * p.dim;
  F32 pre[kStreams];
  for (int j = 0; j < kStreams; ++j) pre[j] = F32::Set(p.pre[row * kStreams + j]);
  ForEachVector(p.dim, [&](int64_t at, auto part) {
    F32 x[kStreams];
    for (int j = 0; j < kStreams; ++j) x[j] = F32::Load(h + j * p.dim + at, part);
    Round<V>(MixStreams<V>(x, pre), p.round).Store(y + at, part);
  });
}

template <class V>
void HcPre(const HcPreParams& p, int64_t begin, int64_t end) {
  WithStreams(p.num_streams, [&]<int kStreams>() {
    for (int64_t row = begin; row < end; ++row) HcPreRow<V, kStreams>(p, row);
  });
}

template <class V, int kStreams>
void HcPostRow(const HcPostParams& p, int64_t row) {
  using F32 = typename V::F32;
  const float* y = p.y + row * p.dim;
  float* h = p.h + row * kStreams * p.dim;
  F32 post[kStreams];
  F32 into[kStreams][kStreams];  // into[j][i]: from stream i into stream j
  for (int j = 0; j < kStreams; ++j) {
    post[j] = F32::Set(p.post[row * kStreams + j]);
    for (int i = 0; i < kStreams; ++i) {
      into[j][i] = F32::Set(p.comb[(row * kStreams + i) * kStreams + j]);
    }
  }
  ForEachVector(p.dim, [&](int64_t at, auto part) {
    F32 x[kStreams];
    for (int i = 0; i < kStreams; ++i) x[i] = F32::Load(h + i * p.dim + at, part);
    const F32 added = F32::Load(y + at, part);
    for (int j = 0; j < kStreams; ++j) {
      const F32 mixed = MixStreams<V>(x, into[j]);
      Round<V>(post[j] * added + mixed, p.round).Store(h + j * p.dim + at, part);
    }
  });
}

template <class V>
void HcPost(const HcPostParams& p, int64_t begin, int64_t end) {
  WithStreams(p.num_streams, [&]<int kStreams>() {
    for (int64_t row = begin; row < end; ++row) HcPostRow<V, kStreams>(p, row);
  });
}

template <class V, int kStreams>
void MeanStreamsRow(const MeanStreamsParams& p, int64_t row) {
  using F32 = typename V::F32;
  const float* h = p.h + row * kStreams * p.dim;
  float* y = p.y + row * p.y_stride;
  const F32 inverse = F32::Set(1.0f / static_cast<float>(kStreams));
  ForEachVector(p.dim, [&](int64_t at, auto part) {
    typename V::F64 low[kStreams];
    typename V::F64 high[kStreams];
    for (int j = 0; j < kStreams; ++j) {
      const F32 x = F32::Load(h + j * p.dim + at, part);
      low[j] = Low(x);
      high[j] = High(x);
    }
    const F32 sum = Narrow(StreamTree(low), StreamTree(high));
    Round<V>(sum * inverse, p.round).Store(y + at, part);
  });
}

template <class V>
void MeanStreams(const MeanStreamsParams& p, int64_t begin, int64_t end) {
  WithStreams(p.num_streams, [&]<int kStreams>() {
    for (int64_t row = begin; row < end; ++row) MeanStreamsRow<V, kStreams>(p, row);
  });
}

// Squares of kRows rows of n values that lie one after the other, summed side by side: one sum
// alone is one chain of additions.
template <class V, int kRows>
[[gnu::always_inline]] inline void SumsOfSquares(const float* x, int64_t n, float (&sums)[kRows]) {
  typename V::F64 sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = V::F64::Zero();
  ForEachVector(n, [&](int64_t at, auto part) {
    for (int r = 0; r < kRows; ++r) {
      const auto value = V::F32::Load(x + r * n + at, part);
      sum[r] = AddProducts<V>(sum[r], value, value);
    }
  });
  for (int r = 0; r < kRows; ++r) sums[r] = SumTree(sum[r]);
}

// Four streams: a matrix [4, 4] is one vector, and the eight mixes of pre and post are another.

// Sums of four lanes side by side, in all of them.
template <class V>
[[gnu::always_inline]] inline typename V::F32 RowSums(typename V::F32 c) {
  const auto sums = [](typename V::F64 x) {
    const auto two = x + SwapTwos(x);
    return two + SwapPairs(two);
  };
  return Narrow(sums(Low(c)), sums(High(c)));
}

// Sums of four lanes that are four apart, in all of them.
template <class V>
[[gnu::always_inline]] inline typename V::F32 ColumnSums(typename V::F32 c) {
  const auto two = Low(c) + High(c);
  const auto sum = two + SwapHalves(two);
  return Narrow(sum, sum);
}

// Softmax of each row, then alternately rows and columns until nearly doubly stochastic.
template <class V>
[[gnu::always_inline]] inline typename V::F32 SinkhornOfFour(typename V::F32 c, int iters,
                                                             float hc_eps) {
  using F32 = typename V::F32;
  const F32 eps = F32::Set(hc_eps);
  const F32 max_of_two = Max(c, SwapPairs(c));
  c = PreciseExp<V>(c - Max(max_of_two, SwapTwos(max_of_two)));
  c = c / RowSums<V>(c) + eps;
  c = c / (ColumnSums<V>(c) + eps);
  for (int iter = 1; iter < iters; ++iter) {
    c = c / (RowSums<V>(c) + eps);
    c = c / (ColumnSums<V>(c) + eps);
  }
  return c;
}

// scalar::MixesOfRow() of four streams.
template <class V>
void MixesOfFour(const HcMixesParams& p, int64_t row, float inverse_rms) {
  using F32 = typename V::F32;
  using F64 = typename V::F64;
  constexpr First kMixes{8};
  const F32 inverse = F32::Set(inverse_rms);
  const float* raw = p.raw + row * 24;
  alignas(64) float scale[kLanes] = {};
  for (int j = 0; j < 8; ++j) scale[j] = p.scale[j / 4];
  const F32 mixes =
      F32::Load(raw, kMixes) * inverse * F32::Load(scale, Whole{}) + F32::Load(p.base, kMixes);
  const F64 one = F64::Set(1);
  const F64 sigmoid = one / (one + ExpF64(F64::Set(-1) * Low(mixes)));
  alignas(64) float sigmoids[kLanes];
  Narrow(sigmoid, sigmoid).Store(sigmoids, Whole{});
  for (int j = 0; j < 4; ++j) {
    p.pre[row * 4 + j] = sigmoids[j] + p.hc_eps;
    p.post[row * 4 + j] = 2.0f * sigmoids[4 + j];
  }
  const F32 comb =
      F32::Load(raw + 8, Whole{}) * inverse * F32::Set(p.scale[2]) + F32::Load(p.base + 8, Whole{});
  SinkhornOfFour<V>(comb, p.sinkhorn_iters, p.hc_eps).Store(p.comb + row * 16, Whole{});
}

template <class V, int kRows>
[[gnu::always_inline]] inline void MixesOfRows(const HcMixesParams& p, int64_t first) {
  const int64_t n = p.num_streams * p.dim;
  float squares[kRows];
  SumsOfSquares<V>(p.h + first * n, n, squares);
  for (int r = 0; r < kRows; ++r) {
    const float inverse = InverseRms(squares[r], n, p.rms_eps);
    if (p.num_streams == 4) {
      MixesOfFour<V>(p, first + r, inverse);
    } else {
      scalar::MixesOfRow(p, first + r, inverse);
    }
  }
}

template <class V>
void HcMixes(const HcMixesParams& p, int64_t begin, int64_t end) {
  constexpr int kRows = 4;
  int64_t row = begin;
  for (; row + kRows <= end; row += kRows) MixesOfRows<V, kRows>(p, row);
  for (; row < end; ++row) MixesOfRows<V, 1>(p, row);
}

// The sums of one stream's gate.
struct GateSums {
  float product;  // of h * (q_weight * k_weight) * key
  float stream;   // squares
  float key;      // squares
};

template <class V>
[[gnu::always_inline]] inline GateSums SumGate(const NgramGateParams& p, int64_t stream,
                                               const float* h, const float* key) {
  using F32 = typename V::F32;
  const uint16_t* q_weight = p.q_weight + stream * p.dim;
  const uint16_t* k_weight = p.k_weight + stream * p.dim;
  auto product = V::F64::Zero();
  auto h_squares = V::F64::Zero();
  auto key_squares = V::F64::Zero();
  ForEachVector(p.dim, [&](int64_t at, auto part) {
    const F32 hs = F32::Load(h + at, part);
    const F32 ks = F32::Load(key + at, part);
    const F32 weight = F32::LoadBf16(q_weight + at, part) * F32::LoadBf16(k_weight + at, part);
    product = AddTerms<V>(product, hs * weight * ks);
    h_squares = AddProducts<V>(h_squares, hs, hs);
    key_squares = AddProducts<V>(key_squares, ks, ks);
  });
  return {SumTree(product), SumTree(h_squares), SumTree(key_squares)};
}

template <class V>
void NgramGate(const NgramGateParams& p, int64_t begin, int64_t end) {
  using F32 = typename V::F32;
  for (int64_t row = begin; row < end; ++row) {
    if (p.is_image[row] != 0) continue;
    const float* kv = p.kv + row * (p.num_streams + 1) * p.dim;
    const float* value = kv + p.num_streams * p.dim;
    for (int64_t j = 0; j < p.num_streams; ++j) {
      float* h = p.h + (row * p.num_streams + j) * p.dim;
      const GateSums sums = SumGate<V>(p, j, h, kv + j * p.dim);
      const float norm = InverseRms(sums.stream, p.dim, p.eps) * InverseRms(sums.key, p.dim, p.eps);
      const F32 gate = F32::Set(scalar::NgramGateOf(sums.product, norm, p.dim));
      ForEachVector(p.dim, [&](int64_t at, auto part) {
        const F32 x = F32::Load(h + at, part) + gate * F32::Load(value + at, part);
        Round<V>(x, p.round).Store(h + at, part);
      });
    }
  }
}

}  // namespace deepinfer::vector
