// Lanes of fp64 for AVX2: two registers each.  Only included by avx2/*.cc.
#pragma once

#include <immintrin.h>

#include "kernels/avx2/f32.h"

namespace deepinfer::avx2 {

struct F64;
F64 Low(F32 x);
F64 High(F32 x);

struct F64 {
  __m256d low;
  __m256d high;

  static F64 Zero() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
  static F64 Set(double x) { return {_mm256_set1_pd(x), _mm256_set1_pd(x)}; }

  friend F64 operator+(F64 a, F64 b) {
    return {_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
  }
  friend F64 operator-(F64 a, F64 b) {
    return {_mm256_sub_pd(a.low, b.low), _mm256_sub_pd(a.high, b.high)};
  }
  friend F64 operator*(F64 a, F64 b) {
    return {_mm256_mul_pd(a.low, b.low), _mm256_mul_pd(a.high, b.high)};
  }
  friend F64 operator/(F64 a, F64 b) {
    return {_mm256_div_pd(a.low, b.low), _mm256_div_pd(a.high, b.high)};
  }
  friend F64 Fma(F64 a, F64 b, F64 c) {
    return {_mm256_fmadd_pd(a.low, b.low, c.low), _mm256_fmadd_pd(a.high, b.high, c.high)};
  }
  // c - a * b, rounded once.
  friend F64 NegatedFma(F64 a, F64 b, F64 c) {
    return {_mm256_fnmadd_pd(a.low, b.low, c.low), _mm256_fnmadd_pd(a.high, b.high, c.high)};
  }
  friend F64 Nearest(F64 x) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_pd(x.low, kMode), _mm256_round_pd(x.high, kMode)};
  }
  friend F64 Floor(F64 x) { return {_mm256_floor_pd(x.low), _mm256_floor_pd(x.high)}; }
  friend Mask64 operator<(F64 a, F64 b) {
    return {_mm256_cmp_pd(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_pd(a.high, b.high, _CMP_LT_OQ)};
  }
  friend Mask64 operator>(F64 a, F64 b) {
    return {_mm256_cmp_pd(a.low, b.low, _CMP_GT_OQ), _mm256_cmp_pd(a.high, b.high, _CMP_GT_OQ)};
  }
  friend Mask64 IsNan(F64 x) {
    return {_mm256_cmp_pd(x.low, x.low, _CMP_UNORD_Q), _mm256_cmp_pd(x.high, x.high, _CMP_UNORD_Q)};
  }
  friend F64 Select(Mask64 m, F64 a, F64 b) {
    return {_mm256_blendv_pd(b.low, a.low, m.low), _mm256_blendv_pd(b.high, a.high, m.high)};
  }
  friend F64 BitOr(F64 a, F64 b) {
    return {_mm256_or_pd(a.low, b.low), _mm256_or_pd(a.high, b.high)};
  }
  friend F64 BitAnd(F64 a, F64 b) {
    return {_mm256_and_pd(a.low, b.low), _mm256_and_pd(a.high, b.high)};
  }
  // Lanes i and i ^ 1, i ^ 2, i ^ 4 change places.
  friend F64 SwapPairs(F64 x) {
    return {_mm256_permute_pd(x.low, 0x5), _mm256_permute_pd(x.high, 0x5)};
  }
  friend F64 SwapTwos(F64 x) {
    return {_mm256_permute4x64_pd(x.low, 0x4E), _mm256_permute4x64_pd(x.high, 0x4E)};
  }
  friend F64 SwapHalves(F64 x) { return {x.high, x.low}; }

  // Lanes 0..7 and 8..15 of fp32 values.
  friend F64 Low(F32 x) { return Widen(x.low); }
  friend F64 High(F32 x) { return Widen(x.high); }
  // Both halves rounded to fp32.
  friend F32 Narrow(F64 first, F64 second) { return {first.Narrowed(), second.Narrowed()}; }
  // The lanes folded as every sum is, +4, +2, +1, and rounded to fp32.
  friend float SumTree(F64 x) {
    const __m256d four = _mm256_add_pd(x.low, x.high);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return static_cast<float>(_mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two))));
  }

 private:
  static F64 Widen(__m256 x) {
    return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
            _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
  }
  __m256 Narrowed() const {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high),
                                1);
  }
};

template <int kBits>
F64 ShiftBitsLeft(F64 x) {
  return {_mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(x.low), kBits)),
          _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(x.high), kBits))};
}
template <int kBits>
F64 ShiftBitsRight(F64 x) {
  return {_mm256_castsi256_pd(_mm256_srli_epi64(_mm256_castpd_si256(x.low), kBits)),
          _mm256_castsi256_pd(_mm256_srli_epi64(_mm256_castpd_si256(x.high), kBits))};
}

}  // namespace deepinfer::avx2
