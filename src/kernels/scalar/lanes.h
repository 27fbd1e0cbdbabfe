// The dot product and the sums of docs/formats/numerics.md sections 2 and 4.
#pragma once

#include <cmath>
#include <cstdint>

#include "tensor/bf16.h"

namespace deepinfer::scalar {

inline constexpr int kLanes = 16;    // fp32 lanes of a dot
inline constexpr int kOperand = 32;  // bf16 elements of one operand vector
inline constexpr int kSumLanes = 8;  // fp64 lanes of a sum

// Folds the lanes into lane 0 and returns it.
template <typename T, int kCount>
T LaneTree(T (&lane)[kCount]) {
  for (int width = kCount / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  return lane[0];
}

// fma(a, b, c) for bf16 values a and b: their product has 16 significant bits, so the fp64 sum
// rounds to fp32 as the exact one would (two roundings are innocent when the wider format has at
// least 2 * 24 + 2 bits).  A plain fma would be a library call on a baseline processor.
inline float FmaBf16(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) +
                            static_cast<double>(c));
}

// x . w over operand vectors: n bf16 values as fp32, n a multiple of 32.
inline float DotOperands(const float* x, const float* w, int64_t n) {
  float lane[kLanes] = {};
  for (int64_t at = 0; at < n; at += kOperand) {
    for (int i = 0; i < kLanes; ++i) {
      const float odd = FmaBf16(x[at + 2 * i + 1], w[at + 2 * i + 1], lane[i]);
      lane[i] = FmaBf16(x[at + 2 * i], w[at + 2 * i], odd);
    }
  }
  return LaneTree(lane);
}

// Adds term(0) .. term(n-1) in fp64 and rounds once: lane i takes terms i, 8+i, ...
template <typename Term>
float Sum(int64_t n, const Term& term) {
  double lane[kSumLanes] = {};
  const int64_t whole = n / kSumLanes * kSumLanes;
  for (int64_t at = 0; at < whole; at += kSumLanes) {
    for (int i = 0; i < kSumLanes; ++i) lane[i] += term(at + i);
  }
  for (int64_t i = whole; i < n; ++i) lane[i - whole] += term(i);
  return static_cast<float>(LaneTree(lane));
}

inline float SumOfSquares(const float* x, int64_t n) {
  return Sum(n, [x](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}

// x . w over fp32 values: the products are exact in fp64.
inline float DotF32(const float* x, const float* w, int64_t n) {
  return Sum(n,
             [x, w](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(w[i]); });
}

// rsqrt(x) rounded once: the fp64 steps leave no error that fp32 could show.
inline float InverseSqrt(float x) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}

inline float Round(float x, bool round) { return round ? RoundToBf16(x) : x; }

}  // namespace deepinfer::scalar
