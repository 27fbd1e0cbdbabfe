// The quantisers of model.md section 4, for one group each: scalar definitions.
// Inputs that should not occur: an infinity counts as the largest finite number for the scale and
// gets the largest code; NaN counts as nothing for the scale and becomes NaN (FP8) or 0 (FP4).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "tensor/fp4.h"
#include "tensor/fp8.h"

namespace deepinfer {

inline constexpr int64_t kFp8Group = 32;     // act_quant and window KV
inline constexpr int64_t kFp4Group = 32;     // index queries and keys
inline constexpr int64_t kLatentGroup = 16;  // compressed KV

// Largest magnitude, at most the largest finite number; NaN counts as nothing.
inline float MaxMagnitude(std::span<const float> group) {
  float max = 0;
  for (const float value : group) {
    const float magnitude = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0x7FFFFFFF);
    max = magnitude > max ? magnitude : max;
  }
  return std::min(max, std::numeric_limits<float>::max());
}

// act_quant: e8m0 code of the scale of a group of 32; values are e4m3(x / scale).
inline uint8_t Fp8Scale(std::span<const float> group) {
  return CeilPowerOfTwo(std::max(MaxMagnitude(group), 1e-4f) * (1.0f / 448.0f));
}

// fp4_e8: e8m0 code of the scale of a group of 32; values are e2m1(x / scale).
inline uint8_t Fp4Scale(std::span<const float> group) {
  return CeilPowerOfTwo(std::max(MaxMagnitude(group), 6 * PowerOfTwo(-126)) * (1.0f / 6.0f));
}

// fp4_e4m3: e4m3 code of the scale of a group of 16; values are e2m1(x / scale).
inline uint8_t LatentScale(std::span<const float> group) {
  const float a = std::max(MaxMagnitude(group), 6 * PowerOfTwo(-9));
  return EncodeE4M3(std::min(a / 6.0f, 448.0f));
}

}  // namespace deepinfer
