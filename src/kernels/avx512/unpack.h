// Weight rows to operand vectors (numerics.md section 2), a group at a time.  Only included by
// avx512/*.cc.
#pragma once

#include "kernels/avx512/common.h"
#include "kernels/kernels.h"

namespace deepinfer::avx512 {
namespace {

constexpr int64_t kVector = 32;  // bf16 elements of an operand vector

// First `count` bytes of a vector, count in [0, 64].
[[gnu::always_inline]] inline __mmask64 FirstBytes(int64_t count) {
  return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
}

// Codes are looked up as bf16 bits of value * 2^73, what the largest allowed scale byte (200) makes
// of them; lowering the exponent field to that of the scale is then one unsigned saturating
// subtraction, in which zeros stay zeros.
constexpr int kTopScale = 200;
constexpr uint32_t kRaised = (kTopScale - 127) << 7;

// How far a scale byte lowers the exponent field.
[[gnu::always_inline]] inline __m512i Lowering(int scale) {
  return _mm512_set1_epi16(static_cast<short>((kTopScale - scale) << 7));
}

// Every unpacker has
//   kGroup         columns that are unpacked together
//   kVectors       operand vectors that they become
//   kCodeBytes     of a group's codes
//   kScaleBytes    of a group's scales
//   kSharedScales  32 consecutive rows, from a multiple of 32 on, have the same scales
//   Codes, Scales  where a row begins; rows lie code_stride() and scale_stride() bytes apart
//   Load, Unpack   the scales of a group, and a group itself.  kWhole: all its columns exist;
//                  otherwise `left` of them do, and the rest is zeros

struct Bf16Unpacker {
  static constexpr int64_t kGroup = 32;
  static constexpr int kVectors = 1;
  static constexpr int64_t kCodeBytes = 64;
  static constexpr int64_t kScaleBytes = 0;
  static constexpr bool kSharedScales = true;
  struct Lowered {};

  explicit Bf16Unpacker(const WeightView& w)
      : codes_(static_cast<const uint8_t*>(w.data)), code_stride_(w.k * 2) {}

  int64_t code_stride() const { return code_stride_; }
  int64_t scale_stride() const { return 0; }
  const uint8_t* Codes(int64_t row) const { return codes_ + row * code_stride_; }
  const uint8_t* Scales(int64_t) const { return nullptr; }

  template <bool kWhole>
  [[gnu::always_inline]] Lowered Load(const uint8_t*, int64_t) const {
    return {};
  }
  template <bool kWhole>
  [[gnu::always_inline]] void Unpack(const uint8_t* codes, int64_t left, const Lowered&,
                                     __m512i (&out)[1]) const {
    out[0] = kWhole ? _mm512_loadu_si512(codes)
                    : _mm512_maskz_loadu_epi16((__mmask32{1} << left) - 1, codes);
  }

 private:
  const uint8_t* codes_;
  int64_t code_stride_;
};

// Bytes of the raised bf16 of every e4m3 magnitude, as table halves for vpermi2b.
struct E4M3Tables {
  __m512i low[2];
  __m512i high[2];
};

inline E4M3Tables MakeE4M3Tables() {
  alignas(64) uint8_t low[128];
  alignas(64) uint8_t high[128];
  for (int code = 0; code < 128; ++code) {
    const int exponent = code >> 3;
    const int mantissa = code & 7;
    uint32_t bits = 0;
    if (exponent > 0) {
      bits = static_cast<uint32_t>((exponent + 120) << 7 | mantissa << 4) + kRaised;
    } else if (mantissa > 0) {
      const int top = mantissa >= 4 ? 2 : mantissa >= 2 ? 1 : 0;  // value = mantissa * 2^-9
      bits = static_cast<uint32_t>((118 + top) << 7 | ((mantissa << (7 - top)) & 0x7F)) + kRaised;
    }
    low[code] = static_cast<uint8_t>(bits);
    high[code] = static_cast<uint8_t>(bits >> 8);
  }
  return {{_mm512_load_si512(low), _mm512_load_si512(low + 64)},
          {_mm512_load_si512(high), _mm512_load_si512(high + 64)}};
}

struct Fp8Unpacker {
  static constexpr int64_t kGroup = 64;
  static constexpr int kVectors = 2;
  static constexpr int64_t kCodeBytes = 64;
  static constexpr int64_t kScaleBytes = 2;
  static constexpr bool kSharedScales = true;
  struct Lowered {
    __m512i by;
  };

  explicit Fp8Unpacker(const WeightView& w)
      : codes_(static_cast<const uint8_t*>(w.data)),
        scales_(w.scales),
        code_stride_(w.k),
        scale_stride_(w.k / 32),
        tables_(MakeE4M3Tables()) {}

  int64_t code_stride() const { return code_stride_; }
  int64_t scale_stride() const { return scale_stride_; }
  const uint8_t* Codes(int64_t row) const { return codes_ + row * code_stride_; }
  const uint8_t* Scales(int64_t row) const { return scales_ + row / 32 * scale_stride_; }

  // 128-bit lanes 0 and 1 of both vectors are columns 0..31, lanes 2 and 3 columns 32..63.
  template <bool kWhole>
  [[gnu::always_inline]] Lowered Load(const uint8_t* scales, int64_t) const {
    const __m512i first = Lowering(scales[0]);
    if constexpr (!kWhole) return {first};
    return {_mm512_mask_mov_epi64(first, 0xF0, Lowering(scales[1]))};
  }
  template <bool kWhole>
  [[gnu::always_inline]] void Unpack(const uint8_t* codes, int64_t left, const Lowered& lowered,
                                     __m512i (&out)[2]) const {
    const __m512i bytes =
        kWhole ? _mm512_loadu_si512(codes) : _mm512_maskz_loadu_epi8(FirstBytes(left), codes);
    // The lookups ignore the sign bit; a zero code has no sign.
    const __m512i low = _mm512_permutex2var_epi8(tables_.low[0], bytes, tables_.low[1]);
    const __m512i high = _mm512_permutex2var_epi8(tables_.high[0], bytes, tables_.high[1]);
    const __mmask64 nonzero = _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(0x7F));
    // high | (bytes & 0x80)
    const __m512i with_sign = _mm512_ternarylogic_epi32(high, bytes, _mm512_set1_epi8(-128), 0xF8);
    const __m512i signed_high = _mm512_mask_mov_epi8(high, nonzero, with_sign);
    out[0] = _mm512_subs_epu16(_mm512_unpacklo_epi8(low, signed_high), lowered.by);
    out[1] = _mm512_subs_epu16(_mm512_unpackhi_epi8(low, signed_high), lowered.by);
  }

 private:
  const uint8_t* codes_;
  const uint8_t* scales_;
  int64_t code_stride_;
  int64_t scale_stride_;
  const E4M3Tables tables_;
};

struct Fp4Unpacker {
  static constexpr int64_t kGroup = 128;
  static constexpr int kVectors = 4;
  static constexpr int64_t kCodeBytes = 64;
  static constexpr int64_t kScaleBytes = 4;
  static constexpr bool kSharedScales = false;
  struct Lowered {
    __m512i by;
  };

  explicit Fp4Unpacker(const WeightView& w)
      : codes_(static_cast<const uint8_t*>(w.data)),
        scales_(w.scales),
        code_stride_(w.k / 2),
        scale_stride_(w.k / 32) {
    // 0.5, 1, 1.5, 2, 3, 4 and 6, raised; both zeros are +0.
    static constexpr uint16_t kValues[8] = {0x0000, 0x3F00, 0x3F80, 0x3FC0,
                                            0x4000, 0x4040, 0x4080, 0x40C0};
    // vpermw looks at five bits of which the fifth belongs to the next nibble: the table is there
    // twice.
    alignas(64) uint16_t values[32];
    for (int i = 0; i < 32; ++i) {
      const uint32_t magnitude = i % 8 == 0 ? 0 : kValues[i % 8] + kRaised;
      values[i] = static_cast<uint16_t>(i % 16 > 8 ? 0x8000 | magnitude : magnitude);
    }
    values_ = _mm512_load_si512(values);
    // Byte b of the four scales becomes the upper byte of the eight words of 128-bit lane b.
    alignas(64) uint8_t spread[64];
    for (int i = 0; i < 64; ++i) {
      spread[i] = static_cast<uint8_t>(i % 2 == 1 ? i / 16 : 0x80);
    }
    spread_ = _mm512_load_si512(spread);
  }

  int64_t code_stride() const { return code_stride_; }
  int64_t scale_stride() const { return scale_stride_; }
  const uint8_t* Codes(int64_t row) const { return codes_ + row * code_stride_; }
  const uint8_t* Scales(int64_t row) const { return scales_ + row * scale_stride_; }

  template <bool kWhole>
  [[gnu::always_inline]] Lowered Load(const uint8_t* scales, int64_t left) const {
    uint32_t four = 0;
    if constexpr (kWhole) {
      __builtin_memcpy(&four, scales, sizeof four);
    } else {
      for (int64_t i = 0; i < left / 32; ++i) four |= uint32_t{scales[i]} << (8 * i);
    }
    const __m512i upper = _mm512_shuffle_epi8(_mm512_set1_epi32(static_cast<int>(four)), spread_);
    return {_mm512_sub_epi16(Lowering(0), _mm512_srli_epi16(upper, 1))};
  }
  template <bool kWhole>
  [[gnu::always_inline]] void Unpack(const uint8_t* codes, int64_t left, const Lowered& lowered,
                                     __m512i (&out)[4]) const {
    const __m512i words =
        kWhole ? _mm512_loadu_si512(codes) : _mm512_maskz_loadu_epi8(FirstBytes(left / 2), codes);
    const auto look_up = [&](__m512i nibbles) {
      return _mm512_subs_epu16(_mm512_permutexvar_epi16(nibbles, values_), lowered.by);
    };
    out[0] = look_up(words);
    out[1] = look_up(_mm512_srli_epi16(words, 4));
    out[2] = look_up(_mm512_srli_epi16(words, 8));
    out[3] = look_up(_mm512_srli_epi16(words, 12));
  }

 private:
  const uint8_t* codes_;
  const uint8_t* scales_;
  int64_t code_stride_;
  int64_t scale_stride_;
  __m512i values_;
  __m512i spread_;
};

}  // namespace
}  // namespace deepinfer::avx512
