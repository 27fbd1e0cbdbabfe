// Lanes of 32-bit integers and of bytes for AVX2: two registers each.  Only included by avx2/*.cc.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/vector/lanes.h"

namespace deepinfer::avx2 {

using vector::First;
using vector::Whole;

struct Mask {  // all ones or zeros per lane
  __m256 low;
  __m256 high;

  friend uint32_t ToBits(Mask m) {
    return static_cast<uint32_t>(_mm256_movemask_ps(m.low)) |
           static_cast<uint32_t>(_mm256_movemask_ps(m.high)) << 8;
  }
};

struct Mask64 {
  __m256d low;
  __m256d high;
};

// Lanes first .. first + 7 of a part.
inline __m256i MaskOf(First part, int first) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(part.count) - first), lane);
}

struct I32 {
  __m256i low;
  __m256i high;

  static I32 Set(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static I32 Load(const void* p, Whole /*part*/) {
    const auto* at = static_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
  }
  static I32 Load(const void* p, First part) {
    const auto* at = static_cast<const int*>(p);
    return {_mm256_maskload_epi32(at, MaskOf(part, 0)),
            _mm256_maskload_epi32(at + 8, MaskOf(part, 8))};
  }
  void Store(void* p, Whole /*part*/) const {
    auto* at = static_cast<__m256i*>(p);
    _mm256_storeu_si256(at, low);
    _mm256_storeu_si256(at + 1, high);
  }
  // 16 bytes to 16 lanes.
  static I32 LoadBytes(const uint8_t* p, Whole /*part*/) {
    return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  // 8 bytes to 16 lanes of four bits, the low half of a byte first.
  static I32 LoadNibbles(const uint8_t* p) {
    const __m128i bytes = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    const __m128i nibbles =
        _mm_and_si128(_mm_or_si128(bytes, _mm_slli_epi16(bytes, 4)), _mm_set1_epi8(15));
    return {_mm256_cvtepu8_epi32(nibbles), _mm256_cvtepu8_epi32(_mm_srli_si128(nibbles, 8))};
  }
  // Every lane as one byte; lanes in 0..255.
  void StoreBytes(uint8_t* p) const {
    // The packs work inside 128-bit lanes: dwords 0 4 | 2 6 of the result are in order 0 2 | 1 3.
    const __m256i words = _mm256_packus_epi32(low, high);
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
    const __m128i sorted = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bytes, order));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), sorted);
  }
  // The low four bits of every lane, lane 2i in the low half of byte i; lanes in 0..15.
  void StoreNibbles(uint8_t* p) const {
    const __m256i byte = _mm256_set1_epi64x(0xFF);
    const __m256i a = _mm256_and_si256(_mm256_or_si256(low, _mm256_srli_epi64(low, 28)), byte);
    const __m256i b = _mm256_and_si256(_mm256_or_si256(high, _mm256_srli_epi64(high, 28)), byte);
    // Bytes 0, 8 | 16, 24 of each, gathered to the front of every 128-bit lane.
    const __m256i pick =
        _mm256_setr_epi8(0, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 8, -1, -1,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i first = _mm256_shuffle_epi8(a, pick);
    const __m256i second = _mm256_shuffle_epi8(b, pick);
    const __m128i words = _mm_unpacklo_epi32(
        _mm_unpacklo_epi16(_mm256_castsi256_si128(first), _mm256_extracti128_si256(first, 1)),
        _mm_unpacklo_epi16(_mm256_castsi256_si128(second), _mm256_extracti128_si256(second, 1)));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), words);
  }

  // The same 16 bytes four times.
  static I32 RepeatBytes(const void* p) {
    const __m256i bytes =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)));
    return {bytes, bytes};
  }
  // Of every byte of `index` (0..15): that byte of a table from RepeatBytes().
  friend I32 LookUp(I32 table, I32 index) {
    return {_mm256_shuffle_epi8(table.low, index.low), _mm256_shuffle_epi8(table.high, index.high)};
  }

  friend I32 operator+(I32 a, I32 b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
  }
  friend I32 operator-(I32 a, I32 b) {
    return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
  }
  friend I32 operator&(I32 a, I32 b) {
    return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
  }
  friend I32 operator|(I32 a, I32 b) {
    return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
  }
  friend Mask operator<(I32 a, I32 b) {
    return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(b.low, a.low)),
            _mm256_castsi256_ps(_mm256_cmpgt_epi32(b.high, a.high))};
  }
  friend Mask operator==(I32 a, I32 b) {
    return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.low, b.low)),
            _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.high, b.high))};
  }
  friend I32 Select(Mask m, I32 a, I32 b) {
    return {_mm256_blendv_epi8(b.low, a.low, _mm256_castps_si256(m.low)),
            _mm256_blendv_epi8(b.high, a.high, _mm256_castps_si256(m.high))};
  }
};

template <int kBits>
I32 ShiftLeft(I32 x) {
  return {_mm256_slli_epi32(x.low, kBits), _mm256_slli_epi32(x.high, kBits)};
}
template <int kBits>
I32 ShiftRight(I32 x) {  // zeros come in
  return {_mm256_srli_epi32(x.low, kBits), _mm256_srli_epi32(x.high, kBits)};
}
template <int kBits>
I32 ShiftRightSigned(I32 x) {
  return {_mm256_srai_epi32(x.low, kBits), _mm256_srai_epi32(x.high, kBits)};
}

// Lane by lane the dot product of bytes: up to 32 unsigned ones below 32 with signed ones of at
// most 12, added to what it starts from, which fits 15 bits.  Sums of 16 products fit as well.
struct ByteDot {
  I32 pairs;

  static ByteDot From(I32 start) { return {start & I32::Set(0xFFFF)}; }
  void Add(I32 unsigned_bytes, I32 signed_bytes) {
    pairs.low =
        _mm256_add_epi16(pairs.low, _mm256_maddubs_epi16(unsigned_bytes.low, signed_bytes.low));
    pairs.high =
        _mm256_add_epi16(pairs.high, _mm256_maddubs_epi16(unsigned_bytes.high, signed_bytes.high));
  }
  I32 Total() const {
    const __m256i one = _mm256_set1_epi16(1);
    return {_mm256_madd_epi16(pairs.low, one), _mm256_madd_epi16(pairs.high, one)};
  }
};

inline void Transpose8(__m256i (&x)[8]) {
  __m256i t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
    t[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
  }
  __m256i u[8];  // u[4r + c]: of rows 4r .. 4r + 3, column 4l + c in 128-bit part l
  for (int r = 0; r < 8; r += 4) {
    u[r] = _mm256_unpacklo_epi64(t[r], t[r + 2]);
    u[r + 1] = _mm256_unpackhi_epi64(t[r], t[r + 2]);
    u[r + 2] = _mm256_unpacklo_epi64(t[r + 1], t[r + 3]);
    u[r + 3] = _mm256_unpackhi_epi64(t[r + 1], t[r + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    x[c] = _mm256_permute2x128_si256(u[c], u[4 + c], 0x20);
    x[4 + c] = _mm256_permute2x128_si256(u[c], u[4 + c], 0x31);
  }
}

// Lane i of vector j and lane j of vector i change places.
inline void Transpose(I32 (&x)[16]) {
  __m256i quarter[4][8];  // rows 0..7 of the low halves, of the high halves, rows 8..15 of both
  for (int i = 0; i < 8; ++i) {
    quarter[0][i] = x[i].low;
    quarter[1][i] = x[i].high;
    quarter[2][i] = x[8 + i].low;
    quarter[3][i] = x[8 + i].high;
  }
  for (auto& q : quarter) Transpose8(q);
  for (int i = 0; i < 8; ++i) {
    x[i] = {quarter[0][i], quarter[2][i]};
    x[8 + i] = {quarter[1][i], quarter[3][i]};
  }
}

}  // namespace deepinfer::avx2
