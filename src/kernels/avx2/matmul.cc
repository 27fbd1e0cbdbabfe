// Matrix products with two FMAs where AVX-512 has one vdpbf16ps: an operand vector of 32 bf16 is
// two registers of eight (odd, even) pairs, lanes 0..7 and 8..15.
//
// Everything here has internal linkage and instantiates nothing of the standard library: this file
// is compiled with its own flags.
#include <immintrin.h>

#include "kernels/avx2/avx2.h"
#include "kernels/scalar/scalar.h"

namespace deepinfer::avx2 {
namespace {

constexpr int64_t kVector = 32;

// 32 bf16 words.
struct Operand {
  __m256i low;   // lanes 0..7
  __m256i high;  // lanes 8..15
};

struct Lanes {
  __m256 low;
  __m256 high;
};

[[gnu::always_inline]] inline __m256 Fma(__m256 acc, __m256i x, __m256i w) {
  const __m256i odd = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  acc = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(x, odd)),
                        _mm256_castsi256_ps(_mm256_and_si256(w, odd)), acc);
  return _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
                         _mm256_castsi256_ps(_mm256_slli_epi32(w, 16)), acc);
}

[[gnu::always_inline]] inline void Add(Lanes& lanes, const Operand& x, const Operand& w) {
  lanes.low = Fma(lanes.low, x.low, w.low);
  lanes.high = Fma(lanes.high, x.high, w.high);
}

// +8, +4, +2, +1.
[[gnu::always_inline]] inline float LaneTree(const Lanes& lanes) {
  const __m256 eight = _mm256_add_ps(lanes.low, lanes.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

[[gnu::always_inline]] inline float RoundToBf16(float value) {
  uint32_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

[[gnu::always_inline]] inline __m256i Load(const void* data) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(data));
}

// Adds exponents to bf16 words; zeros stay zeros.
[[gnu::always_inline]] inline __m256i AddExponents(__m256i words, __m256i exponents) {
  const __m256i zero = _mm256_cmpeq_epi16(_mm256_and_si256(words, _mm256_set1_epi16(0x7FFF)),
                                          _mm256_setzero_si256());
  return _mm256_add_epi16(words, _mm256_andnot_si256(zero, exponents));
}

[[gnu::always_inline]] inline __m256i Exponents(int first, int second) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_set1_epi16(static_cast<short>((first - 127) * 128))),
      _mm_set1_epi16(static_cast<short>((second - 127) * 128)), 1);
}

// The bytes of a group that a row has, the rest zeros.
template <int64_t kBytes>
struct GroupBytes {
  alignas(32) uint8_t bytes[kBytes];

  [[gnu::always_inline]] const uint8_t* Whole(const uint8_t* data, int64_t left) {
    if (left >= kBytes) return data;
    __builtin_memset(bytes, 0, kBytes);
    __builtin_memcpy(bytes, data, static_cast<size_t>(left));
    return bytes;
  }
};

struct Bf16Unpacker {
  static constexpr int64_t kGroup = 32;
  static constexpr int kVectors = 1;
  const WeightView& w;

  [[gnu::always_inline]] void Unpack(int64_t row, int64_t column, Operand (&out)[1]) const {
    const uint16_t* data = static_cast<const uint16_t*>(w.data) + row * w.k + column;
    GroupBytes<64> tail;
    const uint8_t* bytes = tail.Whole(reinterpret_cast<const uint8_t*>(data), (w.k - column) * 2);
    out[0] = {Load(bytes), Load(bytes + 32)};
  }
};

struct Fp8Unpacker {
  static constexpr int64_t kGroup = 64;
  static constexpr int kVectors = 2;
  const WeightView& w;

  // Words whose low byte is an e4m3 code, to bf16.
  [[gnu::always_inline]] static __m256i ToBf16(__m256i codes) {
    // Subnormals m * 2^-9 by table: low and high byte for m = 0..7.
    const __m128i low = _mm_setr_epi8(0, 0, -128, -64, 0, 32, 64, 96, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m128i high =
        _mm_setr_epi8(0, 0x3B, 0x3B, 0x3B, 0x3C, 0x3C, 0x3C, 0x3C, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi16(0x7F));
    const __m256i normal =
        _mm256_add_epi16(_mm256_slli_epi16(magnitude, 4), _mm256_set1_epi16(120 << 7));
    const __m256i small = _mm256_or_si256(
        _mm256_and_si256(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(low), magnitude),
                         _mm256_set1_epi16(0xFF)),
        _mm256_slli_epi16(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(high), magnitude), 8));
    const __m256i is_small = _mm256_cmpgt_epi16(_mm256_set1_epi16(8), magnitude);
    const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(0x80)), 8);
    return _mm256_or_si256(_mm256_blendv_epi8(normal, small, is_small), sign);
  }

  [[gnu::always_inline]] void Unpack(int64_t row, int64_t column, Operand (&out)[2]) const {
    const uint8_t* data = static_cast<const uint8_t*>(w.data) + row * w.k + column;
    const uint8_t* scales = w.scales + row / 32 * (w.k / 32) + column / 32;
    const int64_t left = w.k - column;
    GroupBytes<64> tail;
    const uint8_t* bytes = tail.Whole(data, left);
    const __m256i a = Load(bytes);       // columns 0..31 of the group
    const __m256i b = Load(bytes + 32);  // columns 32..63
    const __m256i first = _mm256_set1_epi16(static_cast<short>((scales[0] - 127) * 128));
    const __m256i second =
        _mm256_set1_epi16(static_cast<short>((scales[left > 32 ? 1 : 0] - 127) * 128));
    const __m256i zero = _mm256_setzero_si256();
    out[0].low = AddExponents(ToBf16(_mm256_unpacklo_epi8(a, zero)), first);
    out[0].high = AddExponents(ToBf16(_mm256_unpacklo_epi8(b, zero)), second);
    out[1].low = AddExponents(ToBf16(_mm256_unpackhi_epi8(a, zero)), first);
    out[1].high = AddExponents(ToBf16(_mm256_unpackhi_epi8(b, zero)), second);
  }
};

struct Fp4Unpacker {
  static constexpr int64_t kGroup = 128;
  static constexpr int kVectors = 4;
  const WeightView& w;

  // Words whose low nibble is an e2m1 code (and the rest zero), to bf16.
  [[gnu::always_inline]] static __m256i ToBf16(__m256i codes) {
    const __m128i low =
        _mm_setr_epi8(0, 0, -128, -64, 0, 64, -128, -64, 0, 0, -128, -64, 0, 64, -128, -64);
    const __m128i high = _mm_setr_epi8(0, 0x3F, 0x3F, 0x3F, 0x40, 0x40, 0x40, 0x40, -128, -65, -65,
                                       -65, -64, -64, -64, -64);
    return _mm256_or_si256(
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(low), codes),
        _mm256_slli_epi16(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(high), codes), 8));
  }

  [[gnu::always_inline]] void Unpack(int64_t row, int64_t column, Operand (&out)[4]) const {
    const uint8_t* data = static_cast<const uint8_t*>(w.data) + (row * w.k + column) / 2;
    const uint8_t* scales = w.scales + row * (w.k / 32) + column / 32;
    const int64_t left = w.k - column;
    GroupBytes<64> tail;
    const uint8_t* bytes = tail.Whole(data, left / 2);
    int s[4];
    for (int i = 0; i < 4; ++i) s[i] = 32 * i < left ? scales[i] : 127;
    const __m256i words[2] = {Load(bytes), Load(bytes + 32)};
    const __m256i exponents[2] = {Exponents(s[0], s[1]), Exponents(s[2], s[3])};
    const __m256i nibble = _mm256_set1_epi16(15);
    for (int v = 0; v < 4; ++v) {
      __m256i half[2];
      for (int i = 0; i < 2; ++i) {
        const __m256i codes =
            _mm256_and_si256(_mm256_srl_epi16(words[i], _mm_cvtsi32_si128(4 * v)), nibble);
        half[i] = AddExponents(ToBf16(codes), exponents[i]);
      }
      out[v] = {half[0], half[1]};
    }
  }
};

[[gnu::always_inline]] inline const uint16_t* RowOf(const MatmulParams& p, int64_t i,
                                                    int64_t stride) {
  return static_cast<const uint16_t*>(p.x) + (p.x_index != nullptr ? p.x_index[i] : i) * stride;
}

// kRows rows times one output: the weight is unpacked once for all of them.
template <typename Unpacker, int kRows>
void MultiplyRows(const MatmulParams& p, const Unpacker& unpacker, int64_t first, int64_t n,
                  int64_t stride) {
  const uint16_t* x[kRows];
  Lanes acc[kRows];
  for (int r = 0; r < kRows; ++r) {
    x[r] = RowOf(p, first + r, stride);
    acc[r] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  }
  for (int64_t at = 0; at < stride; at += Unpacker::kGroup) {
    Operand w[Unpacker::kVectors];
    unpacker.Unpack(n, at, w);
    for (int v = 0; v < Unpacker::kVectors; ++v) {
      for (int r = 0; r < kRows; ++r) {
        const uint16_t* xv = x[r] + at + v * kVector;
        Add(acc[r], {Load(xv), Load(xv + 16)}, w[v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const float y = LaneTree(acc[r]);
    p.y[(first + r) * p.y_stride + n] = p.round ? RoundToBf16(y) : y;
  }
}

template <typename Unpacker>
void Multiply(const MatmulParams& p, int64_t begin, int64_t end) {
  constexpr int64_t kTile = 4;  // 8 accumulators and the unpacked weight fit 16 registers
  const Unpacker unpacker{p.w};
  const int64_t stride = PackedStride(p.order, p.w.k);
  for (int64_t n = begin; n < end; ++n) {
    int64_t row = 0;
    for (; row + kTile <= p.m; row += kTile) {
      MultiplyRows<Unpacker, kTile>(p, unpacker, row, n, stride);
    }
    for (; row < p.m; ++row) MultiplyRows<Unpacker, 1>(p, unpacker, row, n, stride);
  }
}

}  // namespace

void Matmul(const MatmulParams& p, int64_t begin, int64_t end) {
  if (p.order == ColumnOrder::kF32) return scalar::Matmul(p, begin, end);
  switch (p.w.format) {
    case WeightFormat::kBf16:
      return Multiply<Bf16Unpacker>(p, begin, end);
    case WeightFormat::kFp8:
      return Multiply<Fp8Unpacker>(p, begin, end);
    case WeightFormat::kFp4:
      return Multiply<Fp4Unpacker>(p, begin, end);
    case WeightFormat::kF32:
      return;
  }
}

}  // namespace deepinfer::avx2
