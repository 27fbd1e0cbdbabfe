// Activations to operand rows: quantised or rounded, in the column order of the weight that reads
// them.
#include "kernels/vector/pack.h"

#include "kernels/avx512/avx512.h"
#include "kernels/avx512/common.h"

namespace deepinfer::avx512 {
namespace {

// 32 values of a row as two vectors; lanes past the row's end are zeros.
struct Values {
  __m512 low;
  __m512 high;
};

Values Load(const float* x, int64_t left) {
  if (left >= 32) return {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16)};
  if (left <= 0) return {_mm512_setzero_ps(), _mm512_setzero_ps()};
  const auto mask = static_cast<uint32_t>((uint64_t{1} << left) - 1);
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x),
          _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + 16)};
}

// Exponent field of the smallest power of two >= value.
uint32_t CeilPowerOfTwo(float value) {
  uint32_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return (bits >> 23) + ((bits & 0x7FFFFF) != 0 ? 1 : 0);
}

float PowerOfTwo(uint32_t exponent_field) {
  const uint32_t bits = exponent_field << 23;
  float value = 0;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// Nearest e4m3 value of x, |x| <= 448 after clamping: three mantissa bits from 2^-6 on, multiples
// of 2^-9 below.
__m512 RoundToE4M3(__m512 x) {
  const __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0f));
  const __m512 a =
      _mm512_min_ps(_mm512_andnot_ps(_mm512_set1_ps(-0.0f), x), _mm512_set1_ps(448.0f));
  const __m512i bits = _mm512_castps_si512(a);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 20), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_and_si512(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFFF))),
                       _mm512_set1_epi32(~0xFFFFF));
  const __m512 shifter = _mm512_set1_ps(24576.0f);  // 1.5 * 2^14: one ulp there is 2^-9
  const __m512 small = _mm512_sub_ps(_mm512_add_ps(a, shifter), shifter);
  const __mmask16 is_small = _mm512_cmp_ps_mask(a, _mm512_set1_ps(0x1p-6f), _CMP_LT_OQ);
  return _mm512_or_ps(_mm512_mask_mov_ps(_mm512_castsi512_ps(rounded), is_small, small), sign);
}

// act_quant of one group of 32: q * s.
Values Quantize(const Values& x) {
  const __m512 magnitude = _mm512_max_ps(_mm512_abs_ps(x.low), _mm512_abs_ps(x.high));
  const float max = _mm512_reduce_max_ps(magnitude);
  const uint32_t exponent = CeilPowerOfTwo((max > 1e-4f ? max : 1e-4f) * (1.0f / 448.0f));
  const __m512 scale = _mm512_set1_ps(PowerOfTwo(exponent));
  return {_mm512_mul_ps(RoundToE4M3(_mm512_div_ps(x.low, scale)), scale),
          _mm512_mul_ps(RoundToE4M3(_mm512_div_ps(x.high, scale)), scale)};
}

// 32 bf16 words in natural order.
__m512i ToBf16(const Values& x) {
  const __m256i low = _mm512_cvtepi32_epi16(_mm512_srli_epi32(RoundToBf16Words(x.low), 16));
  const __m256i high = _mm512_cvtepi32_epi16(_mm512_srli_epi32(RoundToBf16Words(x.high), 16));
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

__m512i LoadBf16(const PackParams& p, const float* row, int64_t column) {
  const Values x = Load(row + column, p.k - column);
  return ToBf16(p.quantize && column < p.k ? Quantize(x) : x);
}

void PackNatural(const PackParams& p, const float* row, uint16_t* out, int64_t stride) {
  for (int64_t at = 0; at < stride; at += 32) _mm512_storeu_si512(out + at, LoadBf16(p, row, at));
}

// Vector v takes columns 16q + 8v .. 16q + 8v + 7: even or odd halves of the 256-bit parts.
void PackFp8(const PackParams& p, const float* row, uint16_t* out, int64_t stride) {
  const __m512i even = _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13);
  const __m512i odd = _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15);
  for (int64_t at = 0; at < stride; at += 64) {
    const __m512i a = LoadBf16(p, row, at);
    const __m512i b = LoadBf16(p, row, at + 32);
    _mm512_storeu_si512(out + at, _mm512_permutex2var_epi64(a, even, b));
    _mm512_storeu_si512(out + at + 32, _mm512_permutex2var_epi64(a, odd, b));
  }
}

// Vector v takes columns 4e + v: every fourth word of four vectors.
void PackFp4(const PackParams& p, const float* row, uint16_t* out, int64_t stride) {
  alignas(64) uint16_t fourth[32];
  for (int i = 0; i < 32; ++i) fourth[i] = static_cast<uint16_t>(i < 16 ? 4 * i : 0);
  const __m512i first = _mm512_load_si512(fourth);
  for (int64_t at = 0; at < stride; at += 128) {
    __m512i z[4];
    for (int i = 0; i < 4; ++i) z[i] = LoadBf16(p, row, at + 32 * i);
    for (int v = 0; v < 4; ++v) {
      const __m512i index = _mm512_add_epi16(first, _mm512_set1_epi16(static_cast<short>(v)));
      const __m512i low = _mm512_permutex2var_epi16(z[0], index, z[1]);
      const __m512i high = _mm512_permutex2var_epi16(z[2], index, z[3]);
      _mm512_storeu_si512(out + at + 32 * v,
                          _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1));
    }
  }
}

}  // namespace

void Pack(const PackParams& p, int64_t begin, int64_t end) {
  vector::PackRows(p, begin, end, PackNatural, PackFp8, PackFp4);
}

}  // namespace deepinfer::avx512
