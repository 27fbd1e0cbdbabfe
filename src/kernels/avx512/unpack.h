// Weight rows to operand vectors (numerics.md section 2), a group at a time.  Only included by
// avx512/*.cc.
#pragma once

#include "kernels/avx512/common.h"
#include "kernels/kernels.h"

namespace deepinfer::avx512 {
namespace {

constexpr int64_t kVector = 32;  // bf16 elements of an operand vector

// First `count` bytes of a vector, count in [0, 64].
[[gnu::always_inline]] inline __mmask64 FirstBytes(int64_t count) {
  return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
}

// Adds exponents to bf16 words; zeros stay zeros.
[[gnu::always_inline]] inline __m512i AddExponents(__m512i words, __m512i exponents) {
  const __mmask32 nonzero = _mm512_test_epi16_mask(words, _mm512_set1_epi16(0x7FFF));
  return _mm512_mask_add_epi16(words, nonzero, words, exponents);
}

struct Bf16Unpacker {
  static constexpr int64_t kGroup = 32;
  static constexpr int kVectors = 1;

  explicit Bf16Unpacker(const WeightView& w) : w_(w) {}

  [[gnu::always_inline]] void Unpack(int64_t row, int64_t column, __m512i (&out)[1]) const {
    const uint16_t* data = static_cast<const uint16_t*>(w_.data) + row * w_.k + column;
    const int64_t left = w_.k - column;
    out[0] = left >= kGroup ? _mm512_loadu_si512(data)
                            : _mm512_maskz_loadu_epi16((__mmask32{1} << left) - 1, data);
  }

 private:
  const WeightView& w_;
};

// Bytes of the bf16 of every e4m3 magnitude, as table halves for vpermi2b.
struct E4M3Tables {
  __m512i low[2];
  __m512i high[2];
};

inline E4M3Tables MakeE4M3Tables() {
  alignas(64) uint8_t low[128];
  alignas(64) uint8_t high[128];
  for (int code = 0; code < 128; ++code) {
    const int exponent = code >> 3;
    const int mantissa = code & 7;
    uint32_t bits = 0;
    if (exponent > 0) {
      bits = static_cast<uint32_t>((exponent + 120) << 7 | mantissa << 4);
    } else if (mantissa > 0) {
      const int top = mantissa >= 4 ? 2 : mantissa >= 2 ? 1 : 0;  // value = mantissa * 2^-9
      bits = static_cast<uint32_t>((118 + top) << 7 | ((mantissa << (7 - top)) & 0x7F));
    }
    low[code] = static_cast<uint8_t>(bits);
    high[code] = static_cast<uint8_t>(bits >> 8);
  }
  return {{_mm512_load_si512(low), _mm512_load_si512(low + 64)},
          {_mm512_load_si512(high), _mm512_load_si512(high + 64)}};
}

struct Fp8Unpacker {
  static constexpr int64_t kGroup = 64;
  static constexpr int kVectors = 2;

  explicit Fp8Unpacker(const WeightView& w) : w_(w), tables_(MakeE4M3Tables()) {}

  [[gnu::always_inline]] void Unpack(int64_t row, int64_t column, __m512i (&out)[2]) const {
    const uint8_t* data = static_cast<const uint8_t*>(w_.data) + row * w_.k + column;
    const uint8_t* scales = w_.scales + row / 32 * (w_.k / 32) + column / 32;
    const bool whole = w_.k - column >= kGroup;
    const __m512i codes =
        whole ? _mm512_loadu_si512(data) : _mm512_maskz_loadu_epi8(FirstBytes(w_.k - column), data);
    const __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi8(0x7F));
    const __m512i low = _mm512_permutex2var_epi8(tables_.low[0], magnitude, tables_.low[1]);
    __m512i high = _mm512_permutex2var_epi8(tables_.high[0], magnitude, tables_.high[1]);
    high = _mm512_or_si512(high, _mm512_andnot_si512(_mm512_set1_epi8(0x7F), codes));
    const auto first = static_cast<short>((scales[0] - 127) * 128);
    const auto second = static_cast<short>((scales[whole ? 1 : 0] - 127) * 128);
    const __m512i exponents =
        _mm512_inserti64x4(_mm512_set1_epi16(first), _mm256_set1_epi16(second), 1);
    out[0] = AddExponents(_mm512_unpacklo_epi8(low, high), exponents);
    out[1] = AddExponents(_mm512_unpackhi_epi8(low, high), exponents);
  }

 private:
  const WeightView& w_;
  const E4M3Tables tables_;
};

struct Fp4Unpacker {
  static constexpr int64_t kGroup = 128;
  static constexpr int kVectors = 4;

  explicit Fp4Unpacker(const WeightView& w) : w_(w) {
    static constexpr uint16_t kValues[16] = {0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040,
                                             0x4080, 0x40C0, 0x8000, 0xBF00, 0xBF80, 0xBFC0,
                                             0xC000, 0xC040, 0xC080, 0xC0C0};
    // vpermw looks at five bits of which the fifth belongs to the next nibble: the table is there
    // twice.
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kValues));
    values_ = _mm512_inserti64x4(_mm512_castsi256_si512(half), half, 1);
    // Byte b of the four scales becomes the upper byte of the eight words of 128-bit lane b.
    alignas(64) uint8_t spread[64];
    for (int i = 0; i < 64; ++i) {
      spread[i] = static_cast<uint8_t>(i % 2 == 1 ? i / 16 : 0x80);
    }
    spread_ = _mm512_load_si512(spread);
  }

  [[gnu::always_inline]] void Unpack(int64_t row, int64_t column, __m512i (&out)[4]) const {
    const uint8_t* data = static_cast<const uint8_t*>(w_.data) + (row * w_.k + column) / 2;
    const uint8_t* scales = w_.scales + row * (w_.k / 32) + column / 32;
    const int64_t left = w_.k - column;
    __m512i words;
    uint32_t four = 0;
    if (left >= kGroup) {
      words = _mm512_loadu_si512(data);
      __builtin_memcpy(&four, scales, sizeof four);
    } else {
      words = _mm512_maskz_loadu_epi8(FirstBytes(left / 2), data);
      for (int64_t i = 0; i < left / 32; ++i) four |= uint32_t{scales[i]} << (8 * i);
    }
    // (scale - 127) << 7 in every word.
    const __m512i upper = _mm512_shuffle_epi8(_mm512_set1_epi32(static_cast<int>(four)), spread_);
    const __m512i exponents =
        _mm512_sub_epi16(_mm512_srli_epi16(upper, 1), _mm512_set1_epi16(127 << 7));
    out[0] = AddExponents(_mm512_permutexvar_epi16(words, values_), exponents);
    out[1] =
        AddExponents(_mm512_permutexvar_epi16(_mm512_srli_epi16(words, 4), values_), exponents);
    out[2] =
        AddExponents(_mm512_permutexvar_epi16(_mm512_srli_epi16(words, 8), values_), exponents);
    out[3] =
        AddExponents(_mm512_permutexvar_epi16(_mm512_srli_epi16(words, 12), values_), exponents);
  }

 private:
  const WeightView& w_;
  __m512i values_;
  __m512i spread_;
};

}  // namespace
}  // namespace deepinfer::avx512
