// Activations to operand rows: quantised or rounded, in the column order of the weight that reads
// them.
#include "kernels/vector/pack.h"

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/lanes.h"
#include "kernels/vector/fp8.h"
#include "kernels/vector/rows.h"

namespace deepinfer::avx2 {
namespace {

// 32 bf16 words.
struct Words {
  __m256i low;
  __m256i high;

  void Store(uint16_t* out) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16), high);
  }
};

// 16 values of a row; lanes past its end are zeros.
[[gnu::always_inline]] inline F32 LoadValues(const float* x, int64_t left) {
  if (left >= vector::kLanes) return F32::Load(x, Whole{});
  if (left <= 0) return F32::Zero();
  return F32::Load(x, First{left});
}

// 16 bf16 values as words.
[[gnu::always_inline]] inline __m256i Narrow16(F32 x) {
  const I32 bits = ShiftRight<16>(Bits(RoundToBf16(x)));
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(bits.low, bits.high), 0xD8);
}

// The e4m3 value of x / scale, times scale.
[[gnu::always_inline]] inline F32 Requantize(F32 x, F32 scale) {
  return vector::DecodeE4M3<Lanes>(vector::Encode<vector::E4M3, Lanes>(x / scale)) * scale;
}

// Columns at .. at + 31 of a row.
[[gnu::always_inline]] inline Words LoadBf16(const PackParams& p, const float* row, int64_t at) {
  F32 low = LoadValues(row + at, p.k - at);
  F32 high = LoadValues(row + at + vector::kLanes, p.k - at - vector::kLanes);
  if (p.quantize) {
    const F32 largest = Max(Abs(high), Max(Abs(low), F32::Zero()));
    const uint8_t code = vector::Fp8ScaleOf(vector::MaxMagnitude<Lanes>(largest));
    const F32 scale = F32::Set(vector::E8M0ToFloat(code));
    low = Requantize(low, scale);
    high = Requantize(high, scale);
  }
  return {Narrow16(low), Narrow16(high)};
}

void PackNatural(const PackParams& p, const float* row, uint16_t* out, int64_t stride) {
  for (int64_t at = 0; at < stride; at += 32) LoadBf16(p, row, at).Store(out + at);
}

// Vector v takes columns 16q + 8v .. 16q + 8v + 7: the even or odd 128-bit parts.
void PackFp8(const PackParams& p, const float* row, uint16_t* out, int64_t stride) {
  for (int64_t at = 0; at < stride; at += 64) {
    const Words a = LoadBf16(p, row, at);
    const Words b = LoadBf16(p, row, at + 32);
    Words{_mm256_permute2x128_si256(a.low, a.high, 0x20),
          _mm256_permute2x128_si256(b.low, b.high, 0x20)}
        .Store(out + at);
    Words{_mm256_permute2x128_si256(a.low, a.high, 0x31),
          _mm256_permute2x128_si256(b.low, b.high, 0x31)}
        .Store(out + at + 32);
  }
}

// rows: of two columns v, v + 1 the parts 0, 2 (first half) and 1, 3 (second half).
void StoreColumns(__m256i rows, uint16_t* out) {
  const __m128i even = _mm256_castsi256_si128(rows);
  const __m128i odd = _mm256_extracti128_si256(rows, 1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi32(even, odd));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 32), _mm_unpackhi_epi32(even, odd));
}

// Vector v takes columns 4e + v: every fourth word of four vectors.
void PackFp4(const PackParams& p, const float* row, uint16_t* out, int64_t stride) {
  // Words 0 4 1 5 2 6 3 7 of a 128-bit part: those of each v side by side.
  const __m256i sort = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  for (int64_t at = 0; at < stride; at += 128) {
    for (int64_t i = 0; i < 4; ++i) {
      const Words z = LoadBf16(p, row, at + 32 * i);
      // Dword v of 128-bit part q is a pair of vector v: four by four, rows become columns.
      const __m256i low = _mm256_shuffle_epi8(z.low, sort);    // parts 0, 1
      const __m256i high = _mm256_shuffle_epi8(z.high, sort);  // parts 2, 3
      StoreColumns(_mm256_unpacklo_epi32(low, high), out + at + 8 * i);
      StoreColumns(_mm256_unpackhi_epi32(low, high), out + at + 64 + 8 * i);
    }
  }
}

}  // namespace

void Pack(const PackParams& p, int64_t begin, int64_t end) {
  vector::PackRows(p, begin, end, PackNatural, PackFp8, PackFp4);
}

}  // namespace deepinfer::avx2
