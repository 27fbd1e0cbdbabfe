// bf16: the upper 16 bits of an fp32.  Scalar definitions; the truth that kernels repeat.
#pragma once

#include <bit>
#include <cstdint>

namespace deepinfer {

constexpr float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Round to nearest, ties to even.  NaN stays a (quiet) NaN; too large becomes infinity.
constexpr uint16_t FloatToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// r(x) of model.md: the nearest bf16 value, as an fp32.
constexpr float RoundToBf16(float value) { return Bf16ToFloat(FloatToBf16(value)); }

}  // namespace deepinfer
