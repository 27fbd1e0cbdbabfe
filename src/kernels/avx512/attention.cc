// Attention with vdpbf16ps.  A block of 64 keys is unpacked to bf16 once and serves all heads, as
// keys (rows) for the scores and as values (pairs of rows, channel by channel) for the weighted
// sum.  Both are matrix products in register tiles: 4 heads by 4 keys, and 4 heads by 64 channels.
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/lanes.h"
#include "kernels/avx512/unpack.h"
#include "kernels/key_list.h"
#include "kernels/math.h"
#include "kernels/scalar/scalar.h"
#include "kernels/vector/math.h"
#include "tensor/fp8.h"
#include "tensor/row_codec.h"

namespace deepinfer::avx512 {
namespace {

constexpr int kBlock = 64;
constexpr int64_t kTileHeads = 4;
constexpr int64_t kTileKeys = 4;
constexpr int64_t kChannels = 64;  // of a value tile: four vectors of (even, odd) pairs

thread_local Workspace workspace;

struct HeadState {
  float top;
  float den;
};

// What a row's blocks go through, in the thread's workspace.
struct Scratch {
  uint16_t* keys;     // [64, dim]
  uint16_t* values;   // [dim / 64, 32 pairs, 64 channels, 2]: channel c of keys 2j and 2j+1
  uint16_t* queries;  // [heads, dim]
  float* row;         // [dim]
  float* scores;      // [heads, 64]
  uint32_t* pairs;    // [heads, 32]: weights of keys 2j and 2j+1 as bf16
  float* carry;       // [heads]
  HeadState* heads;   // [heads]
  uint64_t valid;     // bit per slot of the block
};

Scratch LayOut(const AttentionParams& p) {
  const auto dim = static_cast<size_t>(p.dim);
  const auto heads = static_cast<size_t>(p.heads);
  const size_t channels = (dim + kChannels - 1) / kChannels * kChannels;
  const size_t block_bytes = kBlock * channels * sizeof(uint16_t);
  const size_t bytes = 2 * block_bytes + heads * dim * sizeof(uint16_t) + dim * sizeof(float) +
                       heads * (kBlock * sizeof(float) + kBlock / 2 * sizeof(uint32_t) +
                                sizeof(float) + sizeof(HeadState));
  auto* memory = static_cast<char*>(workspace.Get(bytes));
  const auto take = [&memory](size_t size) {
    char* taken = memory;
    memory += size;
    return taken;
  };
  Scratch s{};
  s.keys = reinterpret_cast<uint16_t*>(take(block_bytes));
  s.values = reinterpret_cast<uint16_t*>(take(block_bytes));
  s.queries = reinterpret_cast<uint16_t*>(take(heads * dim * sizeof(uint16_t)));
  s.scores = reinterpret_cast<float*>(take(heads * kBlock * sizeof(float)));
  s.pairs = reinterpret_cast<uint32_t*>(take(heads * kBlock / 2 * sizeof(uint32_t)));
  s.row = reinterpret_cast<float*>(take(dim * sizeof(float)));
  s.carry = reinterpret_cast<float*>(take(heads * sizeof(float)));
  s.heads = reinterpret_cast<HeadState*>(take(heads * sizeof(HeadState)));
  return s;
}

// Exact: the values are bf16.
void NarrowRow(const float* row, int64_t dim, uint16_t* out) {
  for (int64_t at = 0; at < dim; at += 16) {
    const __m512i bits = _mm512_castps_si512(_mm512_loadu_ps(row + at));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
  }
}

// ---- stored rows to bf16 in natural order ----

// A scale byte below 41 would leave the range that lowering covers; such rows take the other way.
bool ScalesAreModerate(const uint8_t* scales, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (scales[i] < 41 || scales[i] > kTopScale) return false;
  }
  return true;
}

// dim e4m3 codes, then dim/32 e8m0 scales.
void DecodeFp8Row(const std::byte* row, int64_t dim, const E4M3Tables& tables, uint16_t* out) {
  const auto* codes = reinterpret_cast<const uint8_t*>(row);
  const uint8_t* scales = codes + dim;
  // Quadwords in an order from which unpacking gives natural columns.
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  for (int64_t at = 0; at < dim; at += 64) {
    const int64_t left = dim - at;
    const __m512i loaded = left >= 64 ? _mm512_loadu_si512(codes + at)
                                      : _mm512_maskz_loadu_epi8(FirstBytes(left), codes + at);
    const __m512i natural = _mm512_permutexvar_epi64(order, loaded);
    const __m512i low = _mm512_permutex2var_epi8(tables.low[0], natural, tables.low[1]);
    const __m512i high = _mm512_permutex2var_epi8(tables.high[0], natural, tables.high[1]);
    // Zeros keep their signs here, so those are put back after the scale.
    const __m512i sign = _mm512_and_si512(natural, _mm512_set1_epi8(-128));
    const __m512i zero = _mm512_setzero_si512();
    const __m512i first =
        _mm512_subs_epu16(_mm512_unpacklo_epi8(low, high), Lowering(scales[at / 32]));
    _mm512_storeu_si512(out + at, _mm512_or_si512(first, _mm512_unpacklo_epi8(zero, sign)));
    if (left < 64) break;
    const __m512i second =
        _mm512_subs_epu16(_mm512_unpackhi_epi8(low, high), Lowering(scales[at / 32 + 1]));
    _mm512_storeu_si512(out + at + 32, _mm512_or_si512(second, _mm512_unpackhi_epi8(zero, sign)));
  }
}

// dim/2 bytes of e2m1 pairs, then dim/16 e4m3 scales.  A code times a scale has at most five
// significant bits: exact in bf16.
void DecodeFp4Row(const std::byte* row, int64_t dim, uint16_t* out) {
  const auto* codes = reinterpret_cast<const uint8_t*>(row);
  const uint8_t* scales = codes + dim / 2;
  const __m512 values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f,
                                       -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
  for (int64_t at = 0; at < dim; at += 32) {
    // Byte i holds columns 2i and 2i+1: two bytes with a code each.
    const __m256i words =
        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + at / 2)));
    const __m256i nibbles = _mm256_and_si256(_mm256_or_si256(words, _mm256_slli_epi16(words, 4)),
                                             _mm256_set1_epi8(0x0F));
    const auto decode = [&](__m128i sixteen, uint8_t scale) {
      return _mm512_castps_si512(
          _mm512_mul_ps(_mm512_permutexvar_ps(_mm512_cvtepu8_epi32(sixteen), values),
                        _mm512_set1_ps(kE4M3Values[scale])));
    };
    const __m512i low = decode(_mm256_castsi256_si128(nibbles), scales[at / 16]);
    const __m512i high = decode(_mm256_extracti128_si256(nibbles, 1), scales[at / 16 + 1]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(low, 16)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at + 16),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(high, 16)));
  }
}

void DecodeStored(RowFormat format, const std::byte* row, int64_t dim, const E4M3Tables& tables,
                  const Scratch& s, uint16_t* out) {
  if (format == RowFormat::kFp4E4M3) return DecodeFp4Row(row, dim, out);
  if (format == RowFormat::kFp8E8M0 &&
      ScalesAreModerate(reinterpret_cast<const uint8_t*>(row) + dim, dim / 32)) {
    return DecodeFp8Row(row, dim, tables, out);
  }
  DecodeRow(format, row, {s.row, static_cast<size_t>(dim)});
  NarrowRow(s.row, dim, out);
}

// Keys of two slots as values: channel by channel, (even, odd).
void InterleavePair(const uint16_t* even, int64_t dim, int64_t pair, uint16_t* values) {
  const uint16_t* odd = even + dim;
  for (int64_t c = 0; c < dim; c += 16) {
    const __m512i low =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(even + c)));
    const __m512i high =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd + c)));
    uint16_t* out =
        values + ((c / kChannels * (kBlock / 2) + pair) * kChannels + c % kChannels) * 2;
    _mm512_storeu_si512(out, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
  }
}

void LoadBlock(const AttentionParams& p, const AttentionRow& row, int64_t first,
               const E4M3Tables& tables, Scratch& s) {
  s.valid = 0;
  for (int slot = 0; slot < kBlock; ++slot) {
    uint16_t* key = s.keys + slot * p.dim;
    const KeySlot from = KeySlotOf(p, row, first + slot);
    if (from.row == nullptr) {
      __builtin_memset(key, 0, static_cast<size_t>(p.dim) * sizeof(uint16_t));
      continue;
    }
    s.valid |= uint64_t{1} << slot;
    DecodeStored(from.format, from.row, p.dim, tables, s, key);
  }
  for (int pair = 0; pair < kBlock / 2; ++pair) {
    InterleavePair(s.keys + 2 * pair * p.dim, p.dim, pair, s.values);
  }
}

// ---- scores ----

template <int kHeads>
void ScoreTile(const AttentionParams& p, const Scratch& s, int64_t head, int64_t slot) {
  const uint16_t* q[kHeads];
  const uint16_t* k[kTileKeys];
  __m512 acc[kHeads][kTileKeys];
#pragma GCC unroll 4
  for (int i = 0; i < kTileKeys; ++i) k[i] = s.keys + (slot + i) * p.dim;
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
    q[h] = s.queries + (head + h) * p.dim;
#pragma GCC unroll 4
    for (int i = 0; i < kTileKeys; ++i) acc[h][i] = _mm512_setzero_ps();
  }
  for (int64_t at = 0; at < p.dim; at += kVector) {
    __m512i key[kTileKeys];
#pragma GCC unroll 4
    for (int i = 0; i < kTileKeys; ++i) key[i] = _mm512_loadu_si512(k[i] + at);
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const __m512i query = _mm512_loadu_si512(q[h] + at);
#pragma GCC unroll 4
      for (int i = 0; i < kTileKeys; ++i) acc[h][i] = Dot(acc[h][i], query, key[i]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
    const __m128 dots = LaneTrees(acc[h][0], acc[h][1], acc[h][2], acc[h][3]);
    _mm_storeu_ps(s.scores + (head + h) * kBlock + slot, _mm_mul_ps(dots, _mm_set1_ps(p.scale)));
  }
}

template <int kHeads>
void ScoreHeads(const AttentionParams& p, const Scratch& s, int64_t head) {
  for (int64_t slot = 0; slot < kBlock; slot += kTileKeys) {
    // Blocks at the end of a list may be mostly empty.
    if ((s.valid >> slot) == 0) break;
    ScoreTile<kHeads>(p, s, head, slot);
  }
}

// ---- softmax ----

// Turns a head's scores into weights and updates its top and den; carry is what the sums so far are
// multiplied by.
void SoftmaxHead(const Scratch& s, int64_t h) {
  HeadState& head = s.heads[h];
  const float* scores = s.scores + h * kBlock;
  __m512 score[4];
  for (int i = 0; i < 4; ++i) {
    const auto valid = static_cast<__mmask16>(s.valid >> (16 * i));
    score[i] = _mm512_mask_loadu_ps(_mm512_set1_ps(-__builtin_inff()), valid, scores + 16 * i);
  }
  const float block_max = _mm512_reduce_max_ps(
      _mm512_max_ps(_mm512_max_ps(score[0], score[1]), _mm512_max_ps(score[2], score[3])));
  const float max = block_max > head.top ? block_max : head.top;
  const float carry = ExpF32(head.top - max);
  __m512d sum = _mm512_setzero_pd();
  for (int i = 0; i < 4; ++i) {
    const auto valid = static_cast<__mmask16>(s.valid >> (16 * i));
    const __m512 weight = _mm512_maskz_mov_ps(
        valid, vector::ExpF32<Lanes>({_mm512_sub_ps(score[i], _mm512_set1_ps(max))}).v);
    sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_castps512_ps256(weight)));
    sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_extractf32x8_ps(weight, 1)));
    // The words' upper halves, two to a pair.
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(s.pairs + h * (kBlock / 2) + 8 * i),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(RoundToBf16Words(weight), 16)));
  }
  head.den = head.den * carry + SumTree(sum);
  head.top = max;
  s.carry[h] = carry;
}

// ---- weighted sum ----

// Channels [channel, channel + 16 * kVectors) of kHeads heads: acc = acc * carry, then the pairs of
// keys in ascending order.
template <int kHeads, int kVectors>
void ValueTile(const AttentionParams& p, const Scratch& s, int64_t head, int64_t channel,
               float* o) {
  const uint16_t* values = s.values + channel * kBlock;
  const uint32_t* pairs = s.pairs + head * (kBlock / 2);
  __m512 acc[kHeads][kVectors];
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
    const __m512 carry = _mm512_set1_ps(s.carry[head + h]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const float* at = o + (head + h) * p.dim + channel + 16 * v;
      acc[h][v] = _mm512_mul_ps(_mm512_loadu_ps(at), carry);
    }
  }
  for (int j = 0; j < kBlock / 2; ++j) {
    __m512i value[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      value[v] = _mm512_loadu_si512(values + (j * kChannels + 16 * v) * 2);
    }
#pragma GCC unroll 4
    for (int h = 0; h < kHeads; ++h) {
      const __m512i weight = _mm512_set1_epi32(static_cast<int>(pairs[h * (kBlock / 2) + j]));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[h][v] = Dot(acc[h][v], weight, value[v]);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < kHeads; ++h) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(o + (head + h) * p.dim + channel + 16 * v, acc[h][v]);
    }
  }
}

template <int kHeads>
void ValueHeads(const AttentionParams& p, const Scratch& s, int64_t head, int64_t channel,
                float* o) {
  // Dims are multiples of 32.
  if (p.dim - channel >= kChannels) return ValueTile<kHeads, 4>(p, s, head, channel, o);
  ValueTile<kHeads, 2>(p, s, head, channel, o);
}

// ---- a row ----

void AttendBlock(const AttentionParams& p, const Scratch& s, float* o) {
  int64_t h = 0;
  for (; h + kTileHeads <= p.heads; h += kTileHeads) ScoreHeads<kTileHeads>(p, s, h);
  for (; h < p.heads; ++h) ScoreHeads<1>(p, s, h);
  for (h = 0; h < p.heads; ++h) SoftmaxHead(s, h);
  for (int64_t channel = 0; channel < p.dim; channel += kChannels) {
    for (h = 0; h + kTileHeads <= p.heads; h += kTileHeads) {
      ValueHeads<kTileHeads>(p, s, h, channel, o);
    }
    for (; h < p.heads; ++h) ValueHeads<1>(p, s, h, channel, o);
  }
}

void AttendRow(const AttentionParams& p, int64_t i, const E4M3Tables& tables, Scratch& s) {
  const AttentionRow& row = p.rows[i];
  const float* q = p.q + i * p.heads * p.dim;
  float* o = p.o + i * p.heads * p.dim;
  NarrowRow(q, p.heads * p.dim, s.queries);
  for (int64_t h = 0; h < p.heads; ++h) s.heads[h] = {.top = -1e30f, .den = 0};
  __builtin_memset(o, 0, static_cast<size_t>(p.heads * p.dim) * sizeof(float));
  const int64_t slots = p.window_size + row.num_selected;
  for (int64_t first = 0; first < slots; first += kBlock) {
    LoadBlock(p, row, first, tables, s);
    AttendBlock(p, s, o);
  }
  for (int64_t h = 0; h < p.heads; ++h) {
    const float den = s.heads[h].den + ExpF32(p.sink[h] - s.heads[h].top);
    for (int64_t c = 0; c < p.dim; c += 16) {
      float* at = o + h * p.dim + c;
      const __m512 value = _mm512_div_ps(_mm512_loadu_ps(at), _mm512_set1_ps(den));
      _mm512_storeu_ps(at, _mm512_castsi512_ps(RoundToBf16Words(value)));
    }
  }
}

}  // namespace

void Attention(const AttentionParams& p, int64_t begin, int64_t end) {
  if (!p.round) return scalar::Attention(p, begin, end);  // --numerics fp32, for checking
  const E4M3Tables tables = MakeE4M3Tables();
  Scratch s = LayOut(p);
  for (int64_t i = begin; i < end; ++i) AttendRow(p, i, tables, s);
}

}  // namespace deepinfer::avx512
