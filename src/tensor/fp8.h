// F8_E4M3 (OCP e4m3fn: 1 sign, 4 exponent bits of bias 7, 3 mantissa bits; no infinities, 0x7F and
// 0xFF are NaN, largest 448) and F8_E8M0 (a power of two, 2^(byte - 127)).  Integer arithmetic
// only, so denormal flushing does not change a bit.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace deepinfer {

// value = mantissa * 2^exponent exactly, for constants in the normal range of fp32.
constexpr float PowerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

constexpr float DecodeE4M3(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  if ((code & 0x7F) == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? static_cast<float>(mantissa) * PowerOfTwo(-9)
                              : static_cast<float>(8 + mantissa) * PowerOfTwo(exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

inline constexpr std::array<float, 256> kE4M3Values = [] {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) {
    values[static_cast<size_t>(code)] = DecodeE4M3(static_cast<uint8_t>(code));
  }
  return values;
}();

// Nearest code, ties to even, subnormals kept.  Magnitudes above 448 (and infinity) become 448, NaN
// becomes NaN.
constexpr uint8_t EncodeE4M3(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7F;
  if (magnitude >= std::bit_cast<uint32_t>(448.0f)) return sign | 0x7E;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent >= -6) {
    // Drop 20 mantissa bits; a carry runs into the exponent, as it should.
    const uint32_t rounded = (magnitude + 0x7FFFF + (magnitude >> 20 & 1)) >> 20;
    return static_cast<uint8_t>(sign | (rounded - (120u << 3)));
  }
  // Subnormal: a multiple of 2^-9.  Below 2^-10 everything rounds to 0 (the tie too).
  if (exponent < -10) return sign;
  const uint32_t significand =
      (magnitude & 0x7FFFFF) | 0x800000;  // value = significand * 2^(exponent-23)
  const int shift = 14 - exponent;        // 23 - 9 - exponent
  const uint32_t half = (1u << (shift - 1)) - 1 + (significand >> shift & 1);
  return static_cast<uint8_t>(sign | (significand + half) >> shift);
}

// 2^(code - 127); code 0 is the subnormal 2^-127.  Code 0xFF is NaN.
constexpr float DecodeE8M0(uint8_t code) {
  if (code == 0xFF) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(code == 0 ? uint32_t{0x400000} : static_cast<uint32_t>(code) << 23);
}

// Scale bytes that a weight may have: the product of two operands then neither overflows nor
// underflows fp32 (docs/formats/numerics.md section 2).
inline constexpr uint8_t kMinScaleByte = 41;
inline constexpr uint8_t kMaxScaleByte = 200;

// Code of the smallest power of two >= value ("p2c"); value positive and normal.
constexpr uint8_t CeilPowerOfTwo(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint8_t>((bits >> 23) + ((bits & 0x7FFFFF) != 0 ? 1 : 0));
}

}  // namespace deepinfer
