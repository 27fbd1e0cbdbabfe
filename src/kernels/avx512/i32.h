// Lanes of 32-bit integers and of bytes for AVX-512: one register each.  Only included by
// avx512/*.cc.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/vector/lanes.h"

namespace deepinfer::avx512 {

using vector::First;
using vector::Whole;

struct Mask {
  __mmask16 v;

  friend uint32_t ToBits(Mask m) { return m.v; }
};

struct Mask64 {
  __mmask8 v;
};

inline __mmask16 MaskOf(First part) { return static_cast<__mmask16>((1U << part.count) - 1); }

struct I32 {
  __m512i v;

  static I32 Set(int32_t x) { return {_mm512_set1_epi32(x)}; }
  static I32 Load(const void* p, Whole /*part*/) { return {_mm512_loadu_si512(p)}; }
  static I32 Load(const void* p, First part) { return {_mm512_maskz_loadu_epi32(MaskOf(part), p)}; }
  void Store(void* p, Whole /*part*/) const { _mm512_storeu_si512(p, v); }
  // 16 bytes to 16 lanes.
  static I32 LoadBytes(const uint8_t* p, Whole /*part*/) {
    return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
  }
  // The low byte of every lane.
  void StoreBytes(uint8_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
  }
  // The low four bits of every lane, lane 2i in the low half of byte i.
  void StoreNibbles(uint8_t* p) const {
    const __m512i pairs = _mm512_or_si512(v, _mm512_srli_epi64(v, 28));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm512_cvtepi64_epi8(pairs));
  }

  // The same 16 bytes four times.
  static I32 RepeatBytes(const void* p) {
    return {_mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
  }
  // Of every byte of `index` (0..15): that byte of a table from RepeatBytes().
  friend I32 LookUp(I32 table, I32 index) { return {_mm512_shuffle_epi8(table.v, index.v)}; }

  friend I32 operator+(I32 a, I32 b) { return {_mm512_add_epi32(a.v, b.v)}; }
  friend I32 operator-(I32 a, I32 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
  friend I32 operator&(I32 a, I32 b) { return {_mm512_and_si512(a.v, b.v)}; }
  friend I32 operator|(I32 a, I32 b) { return {_mm512_or_si512(a.v, b.v)}; }
  friend Mask operator<(I32 a, I32 b) { return {_mm512_cmplt_epi32_mask(a.v, b.v)}; }
  friend Mask operator==(I32 a, I32 b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
  friend I32 Select(Mask m, I32 a, I32 b) { return {_mm512_mask_blend_epi32(m.v, b.v, a.v)}; }
};

template <int kBits>
I32 ShiftLeft(I32 x) {
  return {_mm512_slli_epi32(x.v, kBits)};
}
template <int kBits>
I32 ShiftRight(I32 x) {  // zeros come in
  return {_mm512_srli_epi32(x.v, kBits)};
}
template <int kBits>
I32 ShiftRightSigned(I32 x) {
  return {_mm512_srai_epi32(x.v, kBits)};
}

// Lane by lane the dot product of bytes: up to 32 unsigned ones below 32 with signed ones of at
// most 12, added to what it starts from, which fits 15 bits.
struct ByteDot {
  I32 sum;

  static ByteDot From(I32 start) { return {start}; }
  void Add(I32 unsigned_bytes, I32 signed_bytes) {
    sum.v = _mm512_dpbusd_epi32(sum.v, unsigned_bytes.v, signed_bytes.v);
  }
  I32 Total() const { return sum; }
};

// Lane i of vector j and lane j of vector i change places.
inline void Transpose(I32 (&x)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(x[i].v, x[i + 1].v);
    t[i + 1] = _mm512_unpackhi_epi32(x[i].v, x[i + 1].v);
  }
  __m512i u[16];  // u[4r + c]: of rows 4r .. 4r + 3, column 4l + c in 128-bit part l
  for (int r = 0; r < 16; r += 4) {
    u[r] = _mm512_unpacklo_epi64(t[r], t[r + 2]);
    u[r + 1] = _mm512_unpackhi_epi64(t[r], t[r + 2]);
    u[r + 2] = _mm512_unpacklo_epi64(t[r + 1], t[r + 3]);
    u[r + 3] = _mm512_unpackhi_epi64(t[r + 1], t[r + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    const __m512i a = _mm512_shuffle_i32x4(u[c], u[4 + c], 0x88);  // parts 0, 2 of each
    const __m512i b = _mm512_shuffle_i32x4(u[c], u[4 + c], 0xDD);  // parts 1, 3
    const __m512i d = _mm512_shuffle_i32x4(u[8 + c], u[12 + c], 0x88);
    const __m512i e = _mm512_shuffle_i32x4(u[8 + c], u[12 + c], 0xDD);
    x[c].v = _mm512_shuffle_i32x4(a, d, 0x88);
    x[4 + c].v = _mm512_shuffle_i32x4(b, e, 0x88);
    x[8 + c].v = _mm512_shuffle_i32x4(a, d, 0xDD);
    x[12 + c].v = _mm512_shuffle_i32x4(b, e, 0xDD);
  }
}

}  // namespace deepinfer::avx512
