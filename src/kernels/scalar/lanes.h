// The dot product and the sums of docs/formats/numerics.md sections 2 and 4.
#pragma once

#include <algorithm>
#include <bit>
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

// Smallest and largest exponent field (biased by 127) of the values of a row that are not zero.
struct ExponentRange {
  int min = 255;
  int max = 0;

  void Join(const ExponentRange& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
  }
};

// Whether every product of two bf16 values of these ranges is an fp32 number: 16 significant bits
// fit, if the product neither underflows (below 2^-126) nor overflows.  Then a*b + c in two fp32
// steps is fma(a, b, c), at eight times the speed of FmaBf16.
inline bool ProductsAreExact(const ExponentRange& a, const ExponentRange& b) {
  return a.min + b.min >= 128 && a.max + b.max <= 380;
}

// Range of bf16 values held as fp32.  Denormals count as zero, as in the arithmetic.
inline ExponentRange RangeOf(const float* x, int64_t n) {
  int32_t largest = 0;
  int32_t smallest = 0;  // counted down from 256, so that zero is no candidate
  for (int64_t i = 0; i < n; ++i) {
    const auto exponent = static_cast<int32_t>(std::bit_cast<uint32_t>(x[i]) >> 23 & 0xFF);
    const int32_t down = exponent != 0 ? 256 - exponent : 0;
    largest = exponent > largest ? exponent : largest;
    smallest = down > smallest ? down : smallest;
  }
  return {.min = smallest != 0 ? 256 - smallest : 255, .max = largest};
}

// Rows of operand vectors are kept as fp32 in lane order: of each vector the 16 odd elements first,
// then the 16 even ones, so that the lanes of a step lie side by side.
constexpr int64_t LaneSlot(int64_t at) {
  const int64_t e = at % kOperand;
  return at - e + (e % 2 == 1 ? 0 : kLanes) + e / 2;
}

struct OperandRow {
  const float* values;  // [n] in lane order, bf16 values
  ExponentRange range;
};

// x . w over operand vectors; n a multiple of 32.
inline float DotOperands(const OperandRow& x, const OperandRow& w, int64_t n) {
  float lane[kLanes] = {};
  if (ProductsAreExact(x.range, w.range)) {
    for (int64_t at = 0; at < n; at += kOperand) {
      const float* xv = x.values + at;
      const float* wv = w.values + at;
      for (int i = 0; i < kLanes; ++i) lane[i] = xv[i] * wv[i] + lane[i];
      for (int i = 0; i < kLanes; ++i) lane[i] = xv[kLanes + i] * wv[kLanes + i] + lane[i];
    }
    return LaneTree(lane);
  }
  for (int64_t at = 0; at < n; at += kOperand) {
    const float* xv = x.values + at;
    const float* wv = w.values + at;
    for (int i = 0; i < kLanes; ++i) {
      lane[i] = FmaBf16(xv[kLanes + i], wv[kLanes + i], FmaBf16(xv[i], wv[i], lane[i]));
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
