// Lanes of fp64 for AVX-512: one register each.  Only included by avx512/*.cc.
#pragma once

#include <immintrin.h>

#include "kernels/avx512/f32.h"

namespace deepinfer::avx512 {

struct F64;
F64 Low(F32 x);
F64 High(F32 x);

struct F64 {
  __m512d v;

  static F64 Zero() { return {_mm512_setzero_pd()}; }
  static F64 Set(double x) { return {_mm512_set1_pd(x)}; }

  friend F64 operator+(F64 a, F64 b) { return {_mm512_add_pd(a.v, b.v)}; }
  friend F64 operator-(F64 a, F64 b) { return {_mm512_sub_pd(a.v, b.v)}; }
  friend F64 operator*(F64 a, F64 b) { return {_mm512_mul_pd(a.v, b.v)}; }
  friend F64 operator/(F64 a, F64 b) { return {_mm512_div_pd(a.v, b.v)}; }
  friend F64 Fma(F64 a, F64 b, F64 c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
  // c - a * b, rounded once.
  friend F64 NegatedFma(F64 a, F64 b, F64 c) { return {_mm512_fnmadd_pd(a.v, b.v, c.v)}; }
  friend F64 Nearest(F64 x) { return {_mm512_roundscale_pd(x.v, _MM_FROUND_TO_NEAREST_INT)}; }
  friend F64 Floor(F64 x) { return {_mm512_roundscale_pd(x.v, _MM_FROUND_TO_NEG_INF)}; }
  friend Mask64 operator<(F64 a, F64 b) { return {_mm512_cmp_pd_mask(a.v, b.v, _CMP_LT_OQ)}; }
  friend Mask64 operator>(F64 a, F64 b) { return {_mm512_cmp_pd_mask(a.v, b.v, _CMP_GT_OQ)}; }
  friend Mask64 IsNan(F64 x) { return {_mm512_cmp_pd_mask(x.v, x.v, _CMP_UNORD_Q)}; }
  friend F64 Select(Mask64 m, F64 a, F64 b) { return {_mm512_mask_blend_pd(m.v, b.v, a.v)}; }
  // The bits of a shifted right, ored, anded, as numbers again.
  friend F64 BitOr(F64 a, F64 b) { return {_mm512_or_pd(a.v, b.v)}; }
  friend F64 BitAnd(F64 a, F64 b) { return {_mm512_and_pd(a.v, b.v)}; }
  // Lanes i and i ^ 1, i ^ 2, i ^ 4 change places.
  friend F64 SwapPairs(F64 x) { return {_mm512_permute_pd(x.v, 0x55)}; }
  friend F64 SwapTwos(F64 x) { return {_mm512_permutex_pd(x.v, 0x4E)}; }
  friend F64 SwapHalves(F64 x) { return {_mm512_shuffle_f64x2(x.v, x.v, 0x4E)}; }

  // Lanes 0..7 and 8..15 of fp32 values.
  friend F64 Low(F32 x) { return {_mm512_cvtps_pd(_mm512_castps512_ps256(x.v))}; }
  friend F64 High(F32 x) { return {_mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1))}; }
  // Both halves rounded to fp32.
  friend F32 Narrow(F64 first, F64 second) {
    return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(first.v)),
                               _mm512_cvtpd_ps(second.v), 1)};
  }
  // The lanes folded as every sum is, +4, +2, +1, and rounded to fp32.
  friend float SumTree(F64 x) {
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(x.v), _mm512_extractf64x4_pd(x.v, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return static_cast<float>(_mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two))));
  }
};

template <int kBits>
F64 ShiftBitsLeft(F64 x) {
  return {_mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(x.v), kBits))};
}
template <int kBits>
F64 ShiftBitsRight(F64 x) {
  return {_mm512_castsi512_pd(_mm512_srli_epi64(_mm512_castpd_si512(x.v), kBits))};
}

}  // namespace deepinfer::avx512
