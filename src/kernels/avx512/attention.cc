// Attention with vdpbf16ps: a block of 64 keys is unpacked to bf16 once and serves all heads, as
// keys (rows) for the scores and as values (pairs of rows, channel by channel) for the weighted
// sum.
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/common.h"
#include "kernels/math.h"
#include "kernels/scalar/scalar.h"
#include "tensor/row_codec.h"

namespace deepinfer::avx512 {
namespace {

constexpr int kBlock = 64;
constexpr int kMaxChunks =
    16;  // vectors of 32 channels of a head: dims up to 512 stay in registers

thread_local Workspace workspace;

// One block of the key list as bf16.
struct KeyBlock {
  uint16_t* keys;    // [64, dim]
  uint16_t* values;  // [32 pairs, dim, 2]: channel c of keys 2j and 2j+1
  uint64_t valid;    // bit per slot
};

bool LoadSlot(const AttentionParams& p, const AttentionRow& row, int64_t slot, float* key) {
  if (slot < p.window_size) {
    const int64_t oldest = row.pos - p.window_size + 1;
    const int64_t pos = (oldest > 0 ? oldest : 0) + slot;
    if (pos > row.pos || pos < row.window.floor) return false;
    DecodeRow(p.window_format, row.window.Row(pos), {key, static_cast<size_t>(p.dim)});
    return true;
  }
  const int64_t i = slot - p.window_size;
  if (i >= row.num_selected) return false;
  DecodeRow(p.rows_format, row.rows.Row(row.selected[i]), {key, static_cast<size_t>(p.dim)});
  return true;
}

// Exact: stored rows are bf16 values.
void NarrowRow(const float* row, int64_t dim, uint16_t* out) {
  for (int64_t at = 0; at < dim; at += 16) {
    const __m512i bits = _mm512_castps_si512(_mm512_loadu_ps(row + at));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
  }
}

void LoadBlock(const AttentionParams& p, const AttentionRow& row, int64_t first, float* scratch,
               KeyBlock& block) {
  block.valid = 0;
  for (int slot = 0; slot < kBlock; ++slot) {
    uint16_t* key = block.keys + slot * p.dim;
    if (LoadSlot(p, row, first + slot, scratch)) {
      block.valid |= uint64_t{1} << slot;
      NarrowRow(scratch, p.dim, key);
    } else {
      __builtin_memset(key, 0, static_cast<size_t>(p.dim) * sizeof(uint16_t));
    }
  }
  for (int j = 0; j < kBlock / 2; ++j) {
    const uint16_t* even = block.keys + 2 * j * p.dim;
    const uint16_t* odd = even + p.dim;
    uint16_t* out = block.values + j * p.dim * 2;
    for (int64_t c = 0; c < p.dim; c += 16) {
      const __m512i low =
          _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(even + c)));
      const __m512i high =
          _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd + c)));
      _mm512_storeu_si512(out + 2 * c, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
  }
}

// ExpF32 of math.h, sixteen at a time.
__m512 Exp(__m512 x) {
  const __m512 clamped =
      _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(math::kExpMin)), _mm512_set1_ps(math::kExpMax));
  const __m512 shifter = _mm512_set1_ps(math::kRoundShifter);
  const __m512 shifted = _mm512_fmadd_ps(clamped, _mm512_set1_ps(math::kLog2E), shifter);
  const __m512 n = _mm512_sub_ps(shifted, shifter);
  const __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-math::kLn2Low),
                                   _mm512_fmadd_ps(n, _mm512_set1_ps(-math::kLn2High), clamped));
  __m512 poly = _mm512_set1_ps(math::kExpTaylor[0]);
  for (int i = 1; i < 6; ++i) {
    poly = _mm512_fmadd_ps(poly, r, _mm512_set1_ps(math::kExpTaylor[i]));
  }
  poly = _mm512_fmadd_ps(poly, r, _mm512_set1_ps(1.0f));
  poly = _mm512_fmadd_ps(poly, r, _mm512_set1_ps(1.0f));
  const __m512i whole =
      _mm512_sub_epi32(_mm512_castps_si512(shifted), _mm512_castps_si512(shifter));
  const __m512i half = _mm512_srai_epi32(whole, 1);
  const auto power = [](__m512i e) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(e, _mm512_set1_epi32(127)), 23));
  };
  return _mm512_mul_ps(_mm512_mul_ps(poly, power(half)), power(_mm512_sub_epi32(whole, half)));
}

struct HeadState {
  float top;
  float den;
};

// Scores of all slots; -inf where a slot is empty.
void Scores(const uint16_t* q, const KeyBlock& block, const AttentionParams& p,
            float (&scores)[kBlock]) {
  __m512i query[kMaxChunks];
  const int64_t chunks = p.dim / 32;
  for (int64_t i = 0; i < chunks; ++i) query[i] = _mm512_loadu_si512(q + 32 * i);
  for (int slot = 0; slot < kBlock; slot += 4) {
    __m512 acc[4];
    for (int s = 0; s < 4; ++s) acc[s] = _mm512_setzero_ps();
    for (int64_t i = 0; i < chunks; ++i) {
      for (int s = 0; s < 4; ++s) {
        acc[s] =
            Dot(acc[s], query[i], _mm512_loadu_si512(block.keys + (slot + s) * p.dim + 32 * i));
      }
    }
    for (int s = 0; s < 4; ++s) scores[slot + s] = LaneTree(acc[s]) * p.scale;
  }
  for (int at = 0; at < kBlock; at += 16) {
    const auto empty = static_cast<__mmask16>(~(block.valid >> at));
    _mm512_mask_storeu_ps(scores + at, empty, _mm512_set1_ps(-__builtin_inff()));
  }
}

// Turns scores into weights, updates top and den; returns what the sums so far are multiplied by.
float SoftmaxBlock(float (&scores)[kBlock], const KeyBlock& block, HeadState& head,
                   uint32_t (&pairs)[kBlock / 2]) {
  __m512 s[4];
  for (int i = 0; i < 4; ++i) s[i] = _mm512_loadu_ps(scores + 16 * i);
  const float block_max =
      _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(s[0], s[1]), _mm512_max_ps(s[2], s[3])));
  const float max = block_max > head.top ? block_max : head.top;
  const float carry = ExpF32(head.top - max);
  __m512d sum = _mm512_setzero_pd();
  alignas(64) uint32_t words[kBlock];
  for (int i = 0; i < 4; ++i) {
    const auto valid = static_cast<__mmask16>(block.valid >> (16 * i));
    const __m512 weight = _mm512_maskz_mov_ps(valid, Exp(_mm512_sub_ps(s[i], _mm512_set1_ps(max))));
    sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_castps512_ps256(weight)));
    sum = _mm512_add_pd(sum, _mm512_cvtps_pd(_mm512_extractf32x8_ps(weight, 1)));
    _mm512_store_si512(words + 16 * i, RoundToBf16Words(weight));
  }
  head.den = head.den * carry + SumTree(sum);
  head.top = max;
  for (int j = 0; j < kBlock / 2; ++j) pairs[j] = words[2 * j + 1] | words[2 * j] >> 16;
  return carry;
}

// acc = acc * carry, then the pairs of keys in ascending order.
void AddValues(const uint32_t (&pairs)[kBlock / 2], const KeyBlock& block, float carry, int64_t dim,
               float* acc) {
  constexpr int64_t kStep = 8;  // vectors of 16 channels at a time
  for (int64_t c = 0; c < dim; c += 16 * kStep) {
    const int64_t count = (dim - c) / 16 < kStep ? (dim - c) / 16 : kStep;
    __m512 sums[kStep];
    for (int64_t i = 0; i < count; ++i) {
      sums[i] = _mm512_mul_ps(_mm512_loadu_ps(acc + c + 16 * i), _mm512_set1_ps(carry));
    }
    for (int j = 0; j < kBlock / 2; ++j) {
      const __m512i weight = _mm512_set1_epi32(static_cast<int>(pairs[j]));
      const uint16_t* values = block.values + (j * dim + c) * 2;
      for (int64_t i = 0; i < count; ++i) {
        sums[i] = Dot(sums[i], weight, _mm512_loadu_si512(values + 32 * i));
      }
    }
    for (int64_t i = 0; i < count; ++i) _mm512_storeu_ps(acc + c + 16 * i, sums[i]);
  }
}

void AttendRow(const AttentionParams& p, int64_t i, uint16_t* queries, float* scratch,
               HeadState* heads, KeyBlock& block) {
  const AttentionRow& row = p.rows[i];
  const float* q = p.q + i * p.heads * p.dim;
  float* o = p.o + i * p.heads * p.dim;
  for (int64_t h = 0; h < p.heads; ++h) {
    NarrowRow(q + h * p.dim, p.dim, queries + h * p.dim);
    heads[h] = {.top = -1e30f, .den = 0};
  }
  __builtin_memset(o, 0, static_cast<size_t>(p.heads * p.dim) * sizeof(float));
  const int64_t slots = p.window_size + row.num_selected;
  for (int64_t first = 0; first < slots; first += kBlock) {
    LoadBlock(p, row, first, scratch, block);
    for (int64_t h = 0; h < p.heads; ++h) {
      float scores[kBlock];
      uint32_t pairs[kBlock / 2];
      Scores(queries + h * p.dim, block, p, scores);
      const float carry = SoftmaxBlock(scores, block, heads[h], pairs);
      AddValues(pairs, block, carry, p.dim, o + h * p.dim);
    }
  }
  for (int64_t h = 0; h < p.heads; ++h) {
    const float den = heads[h].den + ExpF32(p.sink[h] - heads[h].top);
    for (int64_t c = 0; c < p.dim; c += 16) {
      float* at = o + h * p.dim + c;
      const __m512 value = _mm512_div_ps(_mm512_loadu_ps(at), _mm512_set1_ps(den));
      _mm512_storeu_ps(at, _mm512_castsi512_ps(RoundToBf16Words(value)));
    }
  }
}

}  // namespace

void Attention(const AttentionParams& p, int64_t begin, int64_t end) {
  // fp32 rows are for checking; wider heads do not fit the registers.
  if (!p.round || p.dim > 32 * kMaxChunks) return scalar::Attention(p, begin, end);
  const auto dim = static_cast<size_t>(p.dim);
  const auto heads = static_cast<size_t>(p.heads);
  const size_t key_bytes = kBlock * dim * sizeof(uint16_t);
  auto* memory = static_cast<char*>(workspace.Get(2 * key_bytes + heads * dim * sizeof(uint16_t) +
                                                  dim * sizeof(float) + heads * sizeof(HeadState)));
  KeyBlock block{.keys = reinterpret_cast<uint16_t*>(memory),
                 .values = reinterpret_cast<uint16_t*>(memory + key_bytes),
                 .valid = 0};
  auto* queries = reinterpret_cast<uint16_t*>(memory + 2 * key_bytes);
  auto* scratch = reinterpret_cast<float*>(queries + heads * dim);
  auto* states = reinterpret_cast<HeadState*>(scratch + dim);
  for (int64_t i = begin; i < end; ++i) AttendRow(p, i, queries, scratch, states, block);
}

}  // namespace deepinfer::avx512
