// Weight rows to operand vectors (numerics.md section 2), a group at a time.  Only included by
// avx2/*.cc.
//
// An operand vector is four registers of fp32: its odd elements for lanes 0..7 and 8..15, then its
// even ones.  A group is unpacked in two halves: lanes 0..7 of all its vectors, then lanes 8..15.
// The codes of a half lie side by side.
#pragma once

#include <immintrin.h>

#include "kernels/kernels.h"

namespace deepinfer::avx2 {
namespace {

constexpr int64_t kVector = 32;     // elements of an operand vector
constexpr int64_t kHalfBytes = 32;  // of codes of half a group, in every format
constexpr uint8_t kScaleOfOne = 127;

[[gnu::always_inline]] inline __m256i LoadHalf(const uint8_t* codes, int half) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + half * kHalfBytes));
}

// The upper and the lower bf16 of 32-bit words as fp32.
[[gnu::always_inline]] inline __m256 OddWords(__m256i words) {
  const __m256i odd = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  return _mm256_castsi256_ps(_mm256_and_si256(words, odd));
}
[[gnu::always_inline]] inline __m256 EvenWords(__m256i words) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
}

// Every unpacker has
//   kGroup       columns that are unpacked together
//   kVectors     operand vectors that they become
//   kScaleBytes  scales of a group
//   kScaleRows   consecutive rows (from a multiple of it on) that share their scales
//   CodesAt      where the codes of a row begin at a column; any row and column will do, to
//                prefetch
//   ScalesAt     the same of its scales
//   Scales       of one group, ready for use, from LoadScales(where they lie)
//   UnpackHalf   the vectors of half a group: of each its odd elements, then its even ones

struct Bf16Unpacker {
  static constexpr int64_t kGroup = 32;
  static constexpr int kVectors = 1;
  static constexpr int64_t kScaleBytes = 0;
  static constexpr int64_t kScaleRows = int64_t{1} << 40;
  struct Scales {};
  const WeightView& w;

  [[gnu::always_inline]] const uint8_t* CodesAt(int64_t row, int64_t column) const {
    return reinterpret_cast<const uint8_t*>(static_cast<const uint16_t*>(w.data) + row * w.k +
                                            column);
  }
  [[gnu::always_inline]] const uint8_t* ScalesAt(int64_t, int64_t) const { return nullptr; }
  [[gnu::always_inline]] static Scales LoadScales(const uint8_t*) { return {}; }
  [[gnu::always_inline]] static void UnpackHalf(const uint8_t* codes, const Scales&, int half,
                                                __m256 (&out)[2]) {
    const __m256i words = LoadHalf(codes, half);
    out[0] = OddWords(words);
    out[1] = EvenWords(words);
  }
};

struct Fp8Unpacker {
  static constexpr int64_t kGroup = 64;
  static constexpr int kVectors = 2;
  static constexpr int64_t kScaleBytes = 2;
  static constexpr int64_t kScaleRows = 32;
  struct Scales {
    __m256 half[2];
  };
  const WeightView& w;

  [[gnu::always_inline]] const uint8_t* CodesAt(int64_t row, int64_t column) const {
    return static_cast<const uint8_t*>(w.data) + row * w.k + column;
  }
  [[gnu::always_inline]] const uint8_t* ScalesAt(int64_t row, int64_t column) const {
    return w.scales + row / 32 * (w.k / 32) + column / 32;
  }
  [[gnu::always_inline]] static Scales LoadScales(const uint8_t* scales) {
    const auto raised = [](int scale) {
      return _mm256_castsi256_ps(_mm256_set1_epi32((scale + kFp16Lowering) << 23));
    };
    return {{raised(scales[0]), raised(scales[1])}};
  }
  // All of a code but its sign, one bit to the right, is the upper byte of an fp16 of
  // value * 2^-8, subnormal values included, which that conversion does not flush.
  [[gnu::always_inline]] static void UnpackHalf(const uint8_t* codes, const Scales& scales,
                                                int half, __m256 (&out)[4]) {
    // 64-bit quarters 0 and 2 belong to vector 0, the others to vector 1.
    const __m256i words = _mm256_permute4x64_epi64(LoadHalf(codes, half), 0xD8);
    const __m256i no_copy = _mm256_set1_epi16(static_cast<short>(0xBF80));  // of the sign
    const __m256i odd = _mm256_and_si256(_mm256_srai_epi16(words, 1), no_copy);
    const __m256i even =
        _mm256_and_si256(_mm256_srai_epi16(_mm256_slli_epi16(words, 8), 1), no_copy);
    const auto scaled = [&](__m128i fp16) {  // + 0: a zero has no sign
      return _mm256_fmadd_ps(_mm256_cvtph_ps(fp16), scales.half[half], _mm256_setzero_ps());
    };
    out[0] = scaled(_mm256_castsi256_si128(odd));
    out[1] = scaled(_mm256_castsi256_si128(even));
    out[2] = scaled(_mm256_extracti128_si256(odd, 1));
    out[3] = scaled(_mm256_extracti128_si256(even, 1));
  }

 private:
  static constexpr int kFp16Lowering = 8;
};

struct Fp4Unpacker {
  static constexpr int64_t kGroup = 128;
  static constexpr int kVectors = 4;
  static constexpr int64_t kScaleBytes = 4;
  static constexpr int64_t kScaleRows = 1;
  struct Scales {
    __m256i lowering[2];
  };
  const WeightView& w;

  [[gnu::always_inline]] const uint8_t* CodesAt(int64_t row, int64_t column) const {
    return static_cast<const uint8_t*>(w.data) + (row * w.k + column) / 2;
  }
  [[gnu::always_inline]] const uint8_t* ScalesAt(int64_t row, int64_t column) const {
    return w.scales + row * (w.k / 32) + column / 32;
  }
  // Codes are looked up as bf16 bits of value * 2^73, what the largest allowed scale byte (200)
  // makes of them; lowering the exponent field to that of the scale is then one unsigned saturating
  // subtraction, in which zeros stay zeros.
  [[gnu::always_inline]] static Scales LoadScales(const uint8_t* scales) {
    int four = 0;
    __builtin_memcpy(&four, scales, sizeof four);
    const __m256i bytes = _mm256_set1_epi32(four);
    const __m256i top = _mm256_set1_epi16(kTopScale << 7);
    const auto lowering = [&](int first) {  // byte `first` for lanes 0..3, the next for lanes 4..7
      const auto upper = [](int byte) {
        return _mm_set1_epi16(static_cast<short>(byte << 8 | 0x80));
      };
      const __m256i spread = _mm256_setr_m128i(upper(first), upper(first + 1));
      return _mm256_sub_epi16(top, _mm256_srli_epi16(_mm256_shuffle_epi8(bytes, spread), 1));
    };
    return {{lowering(0), lowering(2)}};
  }
  [[gnu::always_inline]] static void UnpackHalf(const uint8_t* codes, const Scales& scales,
                                                int half, __m256 (&out)[8]) {
    // Of every 128-bit lane the bytes with nibbles 0 and 1 of its eight words, then those with
    // nibbles 2 and 3.
    const __m256i order =
        Twice(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    const __m256i bytes = _mm256_shuffle_epi8(LoadHalf(codes, half), order);
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i first = _mm256_and_si256(bytes, nibble);  // nibbles 0, then 2
    const __m256i second = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);  // 1, then 3
    const auto split = [&](__m256i words, __m256* at) {
      const __m256i scaled = _mm256_subs_epu16(words, scales.lowering[half]);
      at[0] = OddWords(scaled);
      at[1] = EvenWords(scaled);
    };
    const __m256i low =
        Twice(_mm_setr_epi8(0, -128, 0, 64, -128, -64, 0, 64, 0, -128, 0, 64, -128, -64, 0, 64));
    const __m256i high = Twice(_mm_setr_epi8(0, 99, 100, 100, 100, 100, 101, 101,  //
                                             0, -29, -28, -28, -28, -28, -27, -27));
    const __m256i first_low = _mm256_shuffle_epi8(low, first);
    const __m256i first_high = _mm256_shuffle_epi8(high, first);
    split(_mm256_unpacklo_epi8(first_low, first_high), out);
    split(_mm256_unpackhi_epi8(first_low, first_high), out + 4);
    const __m256i second_low = _mm256_shuffle_epi8(low, second);
    const __m256i second_high = _mm256_shuffle_epi8(high, second);
    split(_mm256_unpacklo_epi8(second_low, second_high), out + 2);
    split(_mm256_unpackhi_epi8(second_low, second_high), out + 6);
  }

 private:
  static constexpr int kTopScale = 200;

  [[gnu::always_inline]] static __m256i Twice(__m128i x) { return _mm256_setr_m128i(x, x); }
};

}  // namespace
}  // namespace deepinfer::avx2
