// Lanes of fp32 for AVX-512: one register each.  Only included by avx512/*.cc.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "kernels/avx512/i32.h"

namespace deepinfer::avx512 {

struct F32;
F32 FromBits(I32 x);
F32 ToF32(I32 x);

struct F32 {
  __m512 v;

  static F32 Zero() { return {_mm512_setzero_ps()}; }
  static F32 Set(float x) { return {_mm512_set1_ps(x)}; }
  static F32 Load(const float* p, Whole /*part*/) { return {_mm512_loadu_ps(p)}; }
  static F32 Load(const float* p, First part) { return {_mm512_maskz_loadu_ps(MaskOf(part), p)}; }
  static F32 LoadBf16(const uint16_t* p, Whole /*part*/) {
    return Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F32 LoadBf16(const uint16_t* p, First part) {
    return Widen(_mm256_maskz_loadu_epi16(MaskOf(part), p));
  }
  // Every value twice: p[0], p[0], p[1], p[1], ...; a part of 16 lanes reads half as many values.
  static F32 LoadTwice(const float* p, Whole /*part*/) { return Twice(_mm256_loadu_ps(p)); }
  static F32 LoadTwice(const float* p, First part) {
    return Twice(_mm256_maskz_loadu_ps(static_cast<__mmask8>((1U << part.count / 2) - 1), p));
  }
  void Store(float* p, Whole /*part*/) const { _mm512_storeu_ps(p, v); }
  void Store(float* p, First part) const { _mm512_mask_storeu_ps(p, MaskOf(part), v); }

  friend F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
  friend F32 Fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend F32 Sqrt(F32 x) { return {_mm512_sqrt_ps(x.v)}; }
  friend F32 Abs(F32 x) { return {_mm512_abs_ps(x.v)}; }
  // a < b ? a : b and a > b ? a : b, NaN and signed zeros included.
  friend F32 Min(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
  friend F32 Max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
  friend Mask operator<(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
  friend Mask operator>(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
  friend Mask IsNan(F32 x) { return {_mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q)}; }
  friend F32 Select(Mask m, F32 a, F32 b) { return {_mm512_mask_blend_ps(m.v, b.v, a.v)}; }
  // Lanes 2i and 2i + 1 change places.
  friend F32 SwapPairs(F32 x) { return {_mm512_permute_ps(x.v, 0xB1)}; }
  // Lanes 4i, 4i + 1 and 4i + 2, 4i + 3 change places.
  friend F32 SwapTwos(F32 x) { return {_mm512_permute_ps(x.v, 0x4E)}; }
  friend float MaxLane(F32 x) { return _mm512_reduce_max_ps(x.v); }
  friend I32 Bits(F32 x) { return {_mm512_castps_si512(x.v)}; }
  friend F32 FromBits(I32 x) { return {_mm512_castsi512_ps(x.v)}; }
  // r(x) of a result of arithmetic: not subnormal (the instruction would flush it).
  friend F32 RoundToBf16(F32 x) { return Widen(std::bit_cast<__m256i>(_mm512_cvtneps_pbh(x.v))); }
  friend F32 ToF32(I32 x) { return {_mm512_cvtepi32_ps(x.v)}; }

 private:
  static F32 Widen(__m256i bf16) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16))};
  }
  static F32 Twice(__m256 x) {
    const __m512i index = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return {_mm512_permutexvar_ps(index, _mm512_castps256_ps512(x))};
  }
};

}  // namespace deepinfer::avx512
