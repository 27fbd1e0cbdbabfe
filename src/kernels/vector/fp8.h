// FP8 and FP4 codes in lanes: tensor/fp8.h and tensor/fp4.h, sixteen at a time.
#pragma once

#include "kernels/vector/lanes.h"

namespace deepinfer::vector {

[[gnu::always_inline]] inline float E8M0ToFloat(uint8_t code) {
  const uint32_t bits = code == 0xFF ? 0x7FC00000 : code == 0 ? 0x400000 : uint32_t{code} << 23;
  return __builtin_bit_cast(float, bits);
}

// Code of the smallest power of two >= value; value positive and normal.
[[gnu::always_inline]] inline uint8_t CeilPowerOfTwoCode(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  return static_cast<uint8_t>((bits >> 23) + ((bits & 0x7FFFFF) != 0 ? 1 : 0));
}

// Values of e4m3 codes (lanes in 0..255).
template <class V>
[[gnu::always_inline]] inline typename V::F32 DecodeE4M3(typename V::I32 codes) {
  using F32 = typename V::F32;
  using I32 = typename V::I32;
  const I32 magnitude = codes & I32::Set(0x7F);
  const F32 normal = FromBits(ShiftLeft<20>(magnitude) + I32::Set(120 << 23));
  const F32 small = ToF32(magnitude) * F32::Set(0x1p-9f);
  const F32 value = Select(magnitude < I32::Set(8), small, normal);
  const I32 sign = ShiftLeft<24>(codes & I32::Set(0x80));
  const I32 quiet_nan = I32::Set(0x7FC00000);
  return FromBits(Select(magnitude == I32::Set(0x7F), quiet_nan, Bits(value) | sign));
}

// A format of 1 sign, some exponent and kMantissa bits, for rounding to it.
struct E4M3 {
  static constexpr int kMantissa = 3;
  static constexpr int kSign = 0x80;
  static constexpr int kNan = 0x7F;
  static constexpr int kMinExponent = -6;  // of normal numbers
  static constexpr float kLargest = 448;
};
struct E2M1 {
  static constexpr int kMantissa = 1;
  static constexpr int kSign = 8;
  static constexpr int kNan = 0;
  static constexpr int kMinExponent = 0;
  static constexpr float kLargest = 6;
};

// Nearest codes, ties to even, subnormals kept, magnitudes above the largest become it.
template <class Format, class V>
[[gnu::always_inline]] inline typename V::I32 Encode(typename V::F32 x) {
  using F32 = typename V::F32;
  using I32 = typename V::I32;
  constexpr int kDropped = 23 - Format::kMantissa;
  const F32 a = Min(Abs(x), F32::Set(Format::kLargest));
  // Normal numbers: the upper bits, rounded; a carry runs into the exponent, as it should.
  const I32 bits = Bits(a);
  const I32 odd = ShiftRight<kDropped>(bits) & I32::Set(1);
  const I32 rounded = bits + (odd + I32::Set((1 << (kDropped - 1)) - 1));
  const I32 normal =
      ShiftRight<kDropped>(rounded) - I32::Set((Format::kMinExponent + 126) << Format::kMantissa);
  // Below: multiples of the last bit.  Adding a number whose last bit that is rounds to one.
  constexpr auto kShifterBits =
      static_cast<int32_t>((Format::kMinExponent + kDropped + 127) << 23 | 0x400000);
  const I32 small = Bits(a + FromBits(I32::Set(kShifterBits))) - I32::Set(kShifterBits);
  constexpr auto kMinNormalBits = static_cast<int32_t>((Format::kMinExponent + 127) << 23);
  const I32 magnitude = Select(a < FromBits(I32::Set(kMinNormalBits)), small, normal);
  const I32 code = Select(IsNan(x), I32::Set(Format::kNan), magnitude);
  constexpr int kSignShift = Format::kSign == 0x80 ? 24 : 28;
  return code | (ShiftRight<kSignShift>(Bits(x)) & I32::Set(Format::kSign));
}

}  // namespace deepinfer::vector
