// Pieces of the AVX-512 kernels.  Only included by avx512/*.cc, which are compiled with their own
// flags: everything here has internal linkage, and nothing from the standard library's templates
// may be instantiated in those files, or the linker could hand AVX-512 code to other callers.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/workspace.h"

namespace deepinfer::avx512 {
namespace {

// Folds the 16 lanes as numerics.md section 2 says: +8, +4, +2, +1.
[[gnu::always_inline]] inline float LaneTree(__m512 lanes) {
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Four of them: every step folds the same lanes as LaneTree, several sums side by side.
[[gnu::always_inline]] inline __m128 LaneTrees(__m512 a, __m512 b, __m512 c, __m512 d) {
  const auto halves = [](__m512 x, __m512 y) {  // +8: [x, y]
    return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xEE));
  };
  const __m512 ab = halves(a, b);
  const __m512 cd = halves(c, d);
  // +4: 128-bit lanes [a, b, c, d]
  const __m512 four =
      _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
  const __m512 two = _mm512_add_ps(four, _mm512_permute_ps(four, 0x4E));
  const __m512 one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xB1));
  return _mm512_castps512_ps128(_mm512_permutexvar_ps(
      _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), one));
}

// Folds the 8 fp64 lanes of a sum: +4, +2, +1; rounded to fp32 once.
[[gnu::always_inline]] inline float SumTree(__m512d lanes) {
  const __m256d four =
      _mm256_add_pd(_mm512_castpd512_pd256(lanes), _mm512_extractf64x4_pd(lanes, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  const __m128d one = _mm_add_sd(two, _mm_unpackhi_pd(two, two));
  return static_cast<float>(_mm_cvtsd_f64(one));
}

// r(x), nearest even; for values that are not NaN.
[[gnu::always_inline]] inline float RoundToBf16(float value) {
  uint32_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// The same for 16 values, as 32-bit words whose upper halves are the bf16.
[[gnu::always_inline]] inline __m512i RoundToBf16Words(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  return _mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xFFFF0000)));
}

// acc + the odd, then the even products of two operand vectors (vdpbf16ps).
[[gnu::always_inline]] inline __m512 Dot(__m512 acc, __m512i x, __m512i w) {
  return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w));
}

}  // namespace
}  // namespace deepinfer::avx512
