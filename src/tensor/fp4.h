// E2M1: 1 sign, 2 exponent bits, 1 mantissa bit; 0 .5 1 1.5 2 3 4 6.  Two codes share a byte, the
// low nibble is the even column.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace deepinfer {

inline constexpr std::array<float, 16> kE2M1Values = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                                      -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// Values times two: small integers, so that sums of products are exact.
inline constexpr std::array<int8_t, 16> kE2M1Doubled = {0, 1,  2,  3,  4,  6,  8,  12,
                                                        0, -1, -2, -3, -4, -6, -8, -12};

// Nearest code, ties to the even code; magnitudes above 6 become 6.  The sign of zero is kept.
constexpr uint8_t EncodeE2M1(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const float a = std::bit_cast<float>(bits & 0x7FFFFFFF);
  int code = 0;
  code += a > 0.25f ? 1 : 0;
  code += a >= 0.75f ? 1 : 0;
  code += a > 1.25f ? 1 : 0;
  code += a >= 1.75f ? 1 : 0;
  code += a > 2.5f ? 1 : 0;
  code += a >= 3.5f ? 1 : 0;
  code += a > 5.0f ? 1 : 0;
  return static_cast<uint8_t>(code | static_cast<int>(bits >> 31) << 3);
}

constexpr uint8_t NibbleOf(const uint8_t* packed, int64_t column) {
  const uint8_t byte = packed[column / 2];
  return column % 2 == 0 ? byte & 15 : byte >> 4;
}

}  // namespace deepinfer
