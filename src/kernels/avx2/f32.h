// Lanes of fp32 for AVX2: two registers each.  Only included by avx2/*.cc.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/avx2/i32.h"

namespace deepinfer::avx2 {

struct F32;
F32 FromBits(I32 x);
F32 ToF32(I32 x);

struct F32 {
  __m256 low;
  __m256 high;

  static F32 Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F32 Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F32 Load(const float* p, Whole /*part*/) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  static F32 Load(const float* p, First part) {
    return {_mm256_maskload_ps(p, MaskOf(part, 0)), _mm256_maskload_ps(p + 8, MaskOf(part, 8))};
  }
  static F32 LoadBf16(const uint16_t* p, Whole /*part*/) {
    const auto* at = reinterpret_cast<const __m128i*>(p);
    return {Widen(_mm_loadu_si128(at)), Widen(_mm_loadu_si128(at + 1))};
  }
  static F32 LoadBf16(const uint16_t* p, First part) {
    alignas(32) uint16_t words[16] = {};
    __builtin_memcpy(words, p, static_cast<size_t>(part.count) * sizeof(uint16_t));
    return LoadBf16(words, Whole{});
  }
  // Every value twice: p[0], p[0], p[1], p[1], ...; a part of 16 lanes reads half as many values.
  static F32 LoadTwice(const float* p, Whole /*part*/) { return Twice(_mm256_loadu_ps(p)); }
  static F32 LoadTwice(const float* p, First part) {
    return Twice(_mm256_maskload_ps(p, MaskOf({part.count / 2}, 0)));
  }
  void Store(float* p, Whole /*part*/) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  void Store(float* p, First part) const {
    _mm256_maskstore_ps(p, MaskOf(part, 0), low);
    _mm256_maskstore_ps(p + 8, MaskOf(part, 8), high);
  }

  friend F32 operator+(F32 a, F32 b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  friend F32 operator-(F32 a, F32 b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  friend F32 operator*(F32 a, F32 b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  friend F32 operator/(F32 a, F32 b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  friend F32 Fma(F32 a, F32 b, F32 c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  friend F32 Sqrt(F32 x) { return {_mm256_sqrt_ps(x.low), _mm256_sqrt_ps(x.high)}; }
  friend F32 Abs(F32 x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high)};
  }
  // a < b ? a : b and a > b ? a : b, NaN and signed zeros included.
  friend F32 Min(F32 a, F32 b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  friend F32 Max(F32 a, F32 b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  friend Mask operator<(F32 a, F32 b) {
    return {_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
  }
  friend Mask operator>(F32 a, F32 b) {
    return {_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ)};
  }
  friend Mask IsNan(F32 x) {
    return {_mm256_cmp_ps(x.low, x.low, _CMP_UNORD_Q), _mm256_cmp_ps(x.high, x.high, _CMP_UNORD_Q)};
  }
  friend F32 Select(Mask m, F32 a, F32 b) {
    return {_mm256_blendv_ps(b.low, a.low, m.low), _mm256_blendv_ps(b.high, a.high, m.high)};
  }
  // Lanes 2i and 2i + 1 change places.
  friend F32 SwapPairs(F32 x) {
    return {_mm256_permute_ps(x.low, 0xB1), _mm256_permute_ps(x.high, 0xB1)};
  }
  // Values of e2m1 codes (0..15).
  static F32 OfE2M1(I32 codes) { return {OfE2M1(codes.low), OfE2M1(codes.high)}; }
  // Of 32 consecutive lanes the 16 odd and the 16 even ones, and back.
  friend void SplitPairs(F32 first, F32 second, F32& odd, F32& even) {
    odd = {Pick<0xDD>(first), Pick<0xDD>(second)};
    even = {Pick<0x88>(first), Pick<0x88>(second)};
  }
  friend void MergePairs(F32 odd, F32 even, F32& first, F32& second) {
    first = Interleave(even.low, odd.low);
    second = Interleave(even.high, odd.high);
  }
  // Lanes 4i, 4i + 1 and 4i + 2, 4i + 3 change places.
  friend F32 SwapTwos(F32 x) {
    return {_mm256_permute_ps(x.low, 0x4E), _mm256_permute_ps(x.high, 0x4E)};
  }
  friend float MaxLane(F32 x) {
    const __m256 eight = _mm256_max_ps(x.low, x.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  friend I32 Bits(F32 x) { return {_mm256_castps_si256(x.low), _mm256_castps_si256(x.high)}; }
  friend F32 FromBits(I32 x) { return {_mm256_castsi256_ps(x.low), _mm256_castsi256_ps(x.high)}; }
  // The lanes folded as a dot product is, +8, +4, +2, +1.
  friend float LaneTree(F32 x) {
    const __m256 eight = _mm256_add_ps(x.low, x.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  // r(x): the nearest bf16 value, ties to even; a NaN stays a quiet NaN.
  friend F32 RoundToBf16(F32 x) {
    const I32 bits = Bits(x);
    const I32 odd = ShiftRight<16>(bits) & I32::Set(1);
    const I32 rounded = bits + (odd + I32::Set(0x7FFF));
    const I32 quiet = bits | I32::Set(0x400000);
    return FromBits(Select(IsNan(x), quiet, rounded) & I32::Set(static_cast<int>(0xFFFF0000)));
  }
  friend F32 ToF32(I32 x) { return {_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)}; }

 private:
  static __m256 Widen(__m128i bf16) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16));
  }
  static __m256 OfE2M1(__m256i codes) {
    const __m256 magnitudes = _mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6);
    const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(codes, 3), 31);
    return _mm256_or_ps(_mm256_permutevar8x32_ps(magnitudes, codes), _mm256_castsi256_ps(sign));
  }
  template <int kOrder>
  static __m256 Pick(F32 x) {
    const __m256 parts = _mm256_shuffle_ps(x.low, x.high, kOrder);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(parts), 0xD8));
  }
  static F32 Interleave(__m256 even, __m256 odd) {
    const __m256 a = _mm256_unpacklo_ps(even, odd);
    const __m256 b = _mm256_unpackhi_ps(even, odd);
    return {_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31)};
  }
  static F32 Twice(__m256 x) {
    return {_mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
            _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
  }
};

}  // namespace deepinfer::avx2
