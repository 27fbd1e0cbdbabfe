// The 16 lanes of numerics.md sections 2 and 4.
#pragma once

#include <cmath>
#include <cstdint>

#include "tensor/bf16.h"

namespace deepinfer::scalar {

inline constexpr int kLanes = 16;
inline constexpr int kOperand = 32;  // bf16 elements of one operand vector

// Folds the lanes into lane 0 and returns it.
inline float LaneTree(float (&lane)[kLanes]) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  return lane[0];
}

// Sum of x[0..n): lane i adds x[i], x[16+i], ...
inline float LaneSum(const float* x, int64_t n) {
  float lane[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lane[i % kLanes] += x[i];
  return LaneTree(lane);
}

inline float LaneSumOfSquares(const float* x, int64_t n) {
  float lane[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lane[i % kLanes] = std::fma(x[i], x[i], lane[i % kLanes]);
  return LaneTree(lane);
}

// x . w over fp32 values in natural order (section 2, last paragraph).
inline float DotF32(const float* x, const float* w, int64_t n) {
  float lane[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lane[i % kLanes] = std::fma(x[i], w[i], lane[i % kLanes]);
  return LaneTree(lane);
}

// x . w over operand vectors: n bf16 values as fp32, n a multiple of 32.
inline float DotOperands(const float* x, const float* w, int64_t n) {
  float lane[kLanes] = {};
  for (int64_t at = 0; at < n; at += kOperand) {
    for (int i = 0; i < kLanes; ++i) {
      lane[i] = std::fma(x[at + 2 * i + 1], w[at + 2 * i + 1], lane[i]);
    }
    for (int i = 0; i < kLanes; ++i) lane[i] = std::fma(x[at + 2 * i], w[at + 2 * i], lane[i]);
  }
  return LaneTree(lane);
}

inline float Round(float x, bool round) { return round ? RoundToBf16(x) : x; }

}  // namespace deepinfer::scalar
