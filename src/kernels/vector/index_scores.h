// Index scores (model.md section 7.3).
#pragma once

#include "kernels/kernels.h"
#include "kernels/vector/lanes.h"
#include "kernels/vector/row_walk.h"
#include "kernels/workspace.h"

namespace deepinfer::vector {

// Sixteen keys are taken apart side by side, a lane each, and serve all heads.  Codes doubled are
// whole numbers of at most 12; with 12 added, those of the keys are unsigned bytes, as byte
// products want them, and 12 times the sum of the query's codes is taken off again.

inline constexpr int kKeyBias = 12;
inline constexpr int kGroupWords = 8;  // 32-bit words of four codes in a group of 32

// Sixteen FP4 rows, lane by lane: word w of group g holds four codes that are doubled, in the order
// that all tiles share: even columns of the group in words 0..3, odd ones in words 4..7.
struct Fp4Tile {
  int32_t* codes;  // [groups, 8, 16] four bytes each
  float* scales;   // [groups, 16] 2^(scale - 128)
};

[[gnu::always_inline]] constexpr int64_t TileCodes(int64_t dim) { return dim / 4 * kLanes; }
[[gnu::always_inline]] constexpr int64_t TileScales(int64_t dim) { return dim / 32 * kLanes; }

// 2^(code - 128) of the e8m0 codes: half of the doubling of two operands taken back; 0 for 0 and 1.
template <class V>
[[gnu::always_inline]] inline typename V::F32 HalvedScales(typename V::I32 codes) {
  using I32 = typename V::I32;
  const I32 power = ShiftLeft<23>(codes - I32::Set(1));
  return FromBits(Select(codes < I32::Set(2), I32::Set(0), power));
}

template <class V>
void LoadScales(const uint8_t* const (&rows)[kLanes], int64_t dim, float* scales) {
  using I32 = typename V::I32;
  const int64_t groups = dim / 32;
  for (int64_t g = 0; g < groups; g += 4) {
    const int64_t count = groups - g < 4 ? groups - g : 4;
    alignas(64) uint32_t words[kLanes] = {};
    for (int i = 0; i < kLanes; ++i) {
      const uint8_t* at = rows[i] + dim / 2 + g;
      if (count == 4) {
        __builtin_memcpy(&words[i], at, 4);
      } else {
        for (int64_t k = 0; k < count; ++k) words[i] |= uint32_t{at[k]} << (8 * k);
      }
    }
    I32 codes = I32::Load(words, Whole{});
    for (int64_t k = 0; k < count; ++k) {
      HalvedScales<V>(codes & I32::Set(0xFF)).Store(scales + (g + k) * kLanes, Whole{});
      codes = ShiftRight<8>(codes);
    }
  }
}

// table: 16 bytes, what a code becomes.
template <class V>
void LoadTile(const uint8_t* const (&rows)[kLanes], int64_t dim, const int8_t* table,
              const Fp4Tile& tile) {
  using I32 = typename V::I32;
  const I32 values = I32::RepeatBytes(table);
  const I32 nibble = I32::Set(0x0F0F0F0F);
  const int64_t words = dim / 8;  // of eight codes
  for (int64_t first = 0; first < words; first += kLanes) {
    const int64_t count = words - first < kLanes ? words - first : kLanes;
    I32 x[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const uint8_t* at = rows[i] + first * 4;
      x[i] = count == kLanes ? I32::Load(at, Whole{}) : I32::Load(at, First{count});
    }
    Transpose(x);
    for (int64_t w = 0; w < count; ++w) {
      int32_t* even = tile.codes + ((first + w) / 4 * kGroupWords + w % 4) * kLanes;
      LookUp(values, x[w] & nibble).Store(even, Whole{});
      LookUp(values, ShiftRight<4>(x[w]) & nibble).Store(even + 4 * kLanes, Whole{});
    }
  }
  LoadScales<V>(rows, dim, tile.scales);
}

// All heads of a query in tiles of sixteen.
struct IndexQuery {
  Fp4Tile tile;      // of the first sixteen heads; the next follow, TileCodes and TileScales apart
  int32_t* offsets;  // [heads / 16 rounded up, groups, 16] minus 12 times the sum of codes
};

inline constexpr int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
inline constexpr int8_t kDoubledBiased[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                              12, 11, 10, 9,  8,  6,  4,  0};

template <class V>
void LoadQuery(const IndexScoresParams& p, const IndexQuery& query) {
  using I32 = typename V::I32;
  const int64_t groups = p.dim / 32;
  const int64_t row_bytes = p.dim / 2 + groups;
  const auto* first = reinterpret_cast<const uint8_t*>(p.query);
  for (int64_t head = 0; head < p.heads; head += kLanes) {
    const uint8_t* rows[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      rows[i] = first + (head + i < p.heads ? head + i : p.heads - 1) * row_bytes;
    }
    const int64_t t = head / kLanes;
    const Fp4Tile tile{query.tile.codes + t * TileCodes(p.dim),
                       query.tile.scales + t * TileScales(p.dim)};
    LoadTile<V>(rows, p.dim, kDoubled, tile);
    const I32 bias = I32::Set(kKeyBias * 0x01010101);
    for (int64_t g = 0; g < groups; ++g) {
      auto sum = V::ByteDot::From(I32::Set(0));
      for (int w = 0; w < kGroupWords; ++w) {
        sum.Add(bias, I32::Load(tile.codes + (g * kGroupWords + w) * kLanes, Whole{}));
      }
      (I32::Set(0) - sum.Total())
          .Store(query.offsets + t * TileScales(p.dim) + g * kLanes, Whole{});
    }
  }
}

// Loops over heads and tiles say `unroll 8`, so that GCC 12 keeps their arrays in registers; the
// one over words goes by two, more would spill on AVX2.

// Dot products of kHeads heads from `head` on with kTiles times sixteen keys: what is loaded once
// serves kHeads or kTiles products.  A group's whole number times its scale, a power of two that is
// zero or normal, is exact, so that one fma is the product and the sum.
template <class V, int kTiles, int kHeads>
[[gnu::always_inline]] inline void DotHeads(const IndexQuery& query, const Fp4Tile* keys,
                                            int64_t dim, int64_t head,
                                            typename V::F32 (&dot)[kTiles][kHeads]) {
  using F32 = typename V::F32;
  using I32 = typename V::I32;
  const int64_t tile = head / kLanes;
  const int32_t* codes = query.tile.codes + tile * TileCodes(dim) + head % kLanes;
  const float* scales = query.tile.scales + tile * TileScales(dim) + head % kLanes;
  const int32_t* offsets = query.offsets + tile * TileScales(dim) + head % kLanes;
  for (int64_t g = 0; g < dim / 32; ++g) {
    typename V::ByteDot sum[kTiles][kHeads];
#pragma GCC unroll 8
    for (int h = 0; h < kHeads; ++h) {
      const I32 offset = I32::Set(offsets[g * kLanes + h]);
#pragma GCC unroll 8
      for (int t = 0; t < kTiles; ++t) sum[t][h] = V::ByteDot::From(offset);
    }
#pragma GCC unroll 2
    for (int w = 0; w < kGroupWords; ++w) {
      const int64_t at = (g * kGroupWords + w) * kLanes;
      I32 key[kTiles];
#pragma GCC unroll 8
      for (int t = 0; t < kTiles; ++t) key[t] = I32::Load(keys[t].codes + at, Whole{});
#pragma GCC unroll 8
      for (int h = 0; h < kHeads; ++h) {
        const I32 code = I32::Set(codes[at + h]);
#pragma GCC unroll 8
        for (int t = 0; t < kTiles; ++t) sum[t][h].Add(key[t], code);
      }
    }
#pragma GCC unroll 8
    for (int t = 0; t < kTiles; ++t) {
      const F32 key_scale = F32::Load(keys[t].scales + g * kLanes, Whole{});
#pragma GCC unroll 8
      for (int h = 0; h < kHeads; ++h) {
        const F32 scale = F32::Set(scales[g * kLanes + h]) * key_scale;
        dot[t][h] = Fma(ToF32(sum[t][h].Total()), scale, dot[t][h]);
      }
    }
  }
}

// Adds kHeads heads to the scores in ascending order.
template <class V, int kTiles, int kHeads>
[[gnu::always_inline]] inline void ScoreHeads(const IndexScoresParams& p, const IndexQuery& query,
                                              const Fp4Tile* keys, int64_t head,
                                              typename V::F32 (&score)[kTiles]) {
  using F32 = typename V::F32;
  F32 dot[kTiles][kHeads];
#pragma GCC unroll 8
  for (int t = 0; t < kTiles; ++t) {
#pragma GCC unroll 8
    for (int h = 0; h < kHeads; ++h) dot[t][h] = F32::Zero();
  }
  DotHeads<V, kTiles, kHeads>(query, keys, p.dim, head, dot);
#pragma GCC unroll 8
  for (int h = 0; h < kHeads; ++h) {
    const F32 weight = F32::Set(p.weights[head + h]);
#pragma GCC unroll 8
    for (int t = 0; t < kTiles; ++t) {
      const F32 positive = Max(F32::Zero(), RoundToBf16(dot[t][h]));
      score[t] = score[t] + RoundToBf16(positive * weight);
    }
  }
}

// Scores of the entries [entry, end), which fill kTiles tiles but for the last one's end.
template <class V, int kTiles>
void ScoreTiles(const IndexScoresParams& p, const IndexQuery& query, const Fp4Tile* keys,
                int64_t entry, int64_t end) {
  using F32 = typename V::F32;
  constexpr int kHeads = V::kIndexHeads;
  F32 score[kTiles];
#pragma GCC unroll 8
  for (int t = 0; t < kTiles; ++t) score[t] = F32::Zero();
  int64_t head = 0;
  for (; head + kHeads <= p.heads; head += kHeads) {
    ScoreHeads<V, kTiles, kHeads>(p, query, keys, head, score);
  }
  for (; head < p.heads; ++head) ScoreHeads<V, kTiles, 1>(p, query, keys, head, score);
#pragma GCC unroll 8
  for (int t = 0; t < kTiles; ++t) {
    const F32 rounded = RoundToBf16(score[t]);
    float* scores = p.scores + entry + t * kLanes;
    const int64_t count = end - entry - t * kLanes;
    if (count >= kLanes) {
      rounded.Store(scores, Whole{});
    } else {
      rounded.Store(scores, First{count});
    }
  }
}

// Loads consecutive keys into tiles, one after the other.
template <class V>
struct KeyLoader {
  static constexpr int64_t kAhead = 64;  // keys: their scores take as long as memory takes

  const IndexScoresParams& p;
  int64_t left;  // keys
  RowWalk walk;
  RowWalk ahead;

  KeyLoader(const IndexScoresParams& params, int64_t begin, int64_t end)
      : p(params),
        left(end - begin),
        walk(params.keys, begin),
        ahead(params.keys, begin + kAhead < end ? begin + kAhead : begin) {}

  void Load(const Fp4Tile& tile) {
    const uint8_t* rows[kLanes];
    if (left >= kAhead + kLanes) {
      ahead.Next(rows);
      for (const uint8_t* row : rows) __builtin_prefetch(row);
    }
    if (left >= kLanes) {
      walk.Next(rows);
    } else {  // the last one again where the range ends
      for (int64_t i = 0; i < kLanes; ++i) rows[i] = i < left ? walk.Next() : rows[i - 1];
    }
    left -= kLanes;
    LoadTile<V>(rows, p.dim, kDoubledBiased, tile);
  }
};

template <class V>
void IndexScoresFp4(const IndexScoresParams& p, int64_t begin, int64_t end) {
  constexpr int kTiles = V::kIndexTiles;
  static thread_local Workspace workspace;
  const int64_t codes = TileCodes(p.dim);
  const int64_t scales = TileScales(p.dim);
  const int64_t tiles = (p.heads + kLanes - 1) / kLanes;
  auto* memory = workspace.Array<int32_t>((tiles + kTiles) * (codes + scales) + tiles * scales);
  Fp4Tile keys[kTiles];
  for (Fp4Tile& tile : keys) {
    tile = {memory, reinterpret_cast<float*>(memory + codes)};
    memory += codes + scales;
  }
  const IndexQuery query{{memory, reinterpret_cast<float*>(memory + tiles * codes)},
                         memory + tiles * (codes + scales)};
  LoadQuery<V>(p, query);
  KeyLoader<V> loader(p, begin, end);
  int64_t entry = begin;
  for (; end - entry > (kTiles - 1) * kLanes; entry += kTiles * kLanes) {
    for (const Fp4Tile& tile : keys) loader.Load(tile);
    ScoreTiles<V, kTiles>(p, query, keys, entry, end);
  }
  for (; entry < end; entry += kLanes) {
    loader.Load(keys[0]);
    ScoreTiles<V, 1>(p, query, keys, entry, end);
  }
}

template <class V>
void IndexScores(const IndexScoresParams& p, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (p.format == RowFormat::kFp4E8M0) return IndexScoresFp4<V>(p, begin, end);
  RowWalk walk(p.keys, begin);
  for (int64_t entry = begin; entry < end; ++entry) {
    const auto* key = reinterpret_cast<const float*>(walk.Next());
    float score = 0;
    for (int64_t head = 0; head < p.heads; ++head) {
      const float dot =
          DotF32<V>(reinterpret_cast<const float*>(p.query) + head * p.dim, key, p.dim);
      score += (dot < 0.0f ? 0.0f : dot) * p.weights[head];
    }
    p.scores[entry] = score;
  }
}

}  // namespace deepinfer::vector
