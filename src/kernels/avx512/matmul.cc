// Matrix products with vdpbf16ps.
//
// Few rows: weights are unpacked in registers and meet all rows at once, so that each weight byte
// is touched once.  Many rows: a panel of weight rows is unpacked to memory and meets tiles of
// rows.  Every output has its own 16 lanes over the whole of K in both, so their bits are the same.
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/unpack.h"
#include "kernels/column_order.h"
#include "kernels/scalar/scalar.h"

namespace deepinfer::avx512 {
namespace {

// A register tile: 6 rows times 4 outputs are 24 accumulators of the 32 registers; each step loads
// 10 vectors for 24 products, which two load ports and two multipliers finish together, and 24
// independent chains cover a latency of 6 at two a cycle twice.
constexpr int64_t kTileRows = 6;
constexpr int64_t kTileOutputs = 4;

// ---- many rows ----
// Weight rows unpacked together: 32 rows of 5,120 columns are 320 KiB of the second-level cache,
// from which they and the tile's rows (60 KiB) stream: 52 bytes a cycle of the 64 that it gives.
constexpr int64_t kPanelOutputs = 32;
constexpr int64_t kLine = 64;  // bytes of a cache line

// ---- few rows ----
// Up to here weights are unpacked once for every 6 rows: quicker than by way of memory.
constexpr int64_t kMostFewRows = 12;
// Bytes of activations of a piece that stay in the first-level cache while weights stream past.
constexpr int64_t kDirectBytes = 16 << 10;
// Outputs per tile: enough chains to cover the latency of four products in a row of FP4, few enough
// that the rows asked for ahead (10 KiB each in bf16) are still in the first-level cache when their
// turn comes.
template <typename Unpacker>
constexpr int DirectOutputs(int rows) {
  return Unpacker::kVectors == 4 && rows <= 2 ? 8 : 4;
}
// Outputs whose lanes are kept between pieces: those of one call's chunk, more are taken in turns.
constexpr int64_t kDirectBlock = 64;

// Loops over a register tile say `unroll 8`: only loops that are gone before scalar replacement let
// GCC 12 keep the tile's array in registers.

thread_local Workspace workspace;

const uint16_t* RowOf(const MatmulParams& p, int64_t i, int64_t stride) {
  return static_cast<const uint16_t*>(p.x) + (p.x_index != nullptr ? p.x_index[i] : i) * stride;
}

// The lanes of a tile between pieces: [rows][outputs] vectors, rows `stride` vectors apart.
template <int kRows, int kOutputs>
struct Tile {
  __m512 lanes[kRows][kOutputs];

  [[gnu::always_inline]] void Clear() {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) lanes[r][o] = _mm512_setzero_ps();
    }
  }
  [[gnu::always_inline]] void Resume(const __m512* kept, int64_t stride) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) lanes[r][o] = kept[r * stride + o];
    }
  }
  [[gnu::always_inline]] void Keep(__m512* kept, int64_t stride) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) kept[r * stride + o] = lanes[r][o];
    }
  }
  // Sums to y, rows `stride` floats apart, not rounded.
  [[gnu::always_inline]] void Finish(float* y, int64_t stride) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kOutputs % 4 == 0) {
#pragma GCC unroll 8
        for (int o = 0; o < kOutputs; o += 4) {
          _mm_storeu_ps(y + r * stride + o,
                        LaneTrees(lanes[r][o], lanes[r][o + 1], lanes[r][o + 2], lanes[r][o + 3]));
        }
      } else {
#pragma GCC unroll 8
        for (int o = 0; o < kOutputs; ++o) y[r * stride + o] = LaneTree(lanes[r][o]);
      }
    }
  }
};

void RoundRow(float* y, int64_t count) {
  int64_t at = 0;
  for (; at + 16 <= count; at += 16) {
    _mm512_storeu_ps(y + at, _mm512_castsi512_ps(RoundToBf16Words(_mm512_loadu_ps(y + at))));
  }
  for (; at < count; ++at) y[at] = RoundToBf16(y[at]);
}

// ---------------------------------------------------------------------------------- few rows ----

// What a tile of outputs works on: a piece of the rows, and the weights of its first output there.
struct DirectPiece {
  const uint16_t* x;  // [columns / 32][rows][32]: a tile's loads lie at fixed places
  int64_t begin;      // columns of the packed rows
  int64_t end;
  __m512* kept;  // [rows][kDirectBlock] lanes between pieces
};

// One group of columns, weights unpacked in registers.
template <typename Unpacker, int kRows, int kOutputs, bool kWhole>
[[gnu::always_inline]] inline void DirectGroup(const Unpacker& unpacker, const uint16_t* x,
                                               const uint8_t* codes, const uint8_t* scales,
                                               int64_t left, Tile<kRows, kOutputs>& tile) {
  auto lowered = unpacker.template Load<kWhole>(scales, left);
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
    const uint8_t* row = codes + o * unpacker.code_stride();
    // The rows that follow: far enough ahead of the use to hide the latency of memory.
    __builtin_prefetch(row + kOutputs * unpacker.code_stride());
    if constexpr (!Unpacker::kSharedScales) {
      if (o > 0) {
        lowered = unpacker.template Load<kWhole>(scales + o * unpacker.scale_stride(), left);
      }
    }
    __m512i w[Unpacker::kVectors];
    unpacker.template Unpack<kWhole>(row, left, lowered, w);
    // Keeps the compiler from holding many vectors of the rows in registers for the next output,
    // which costs the accumulators theirs; a product reads its row from the first-level cache.
    if constexpr (Unpacker::kVectors > 1) asm volatile("" : : : "memory");
#pragma GCC unroll 8
    for (int v = 0; v < Unpacker::kVectors; ++v) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i xv = _mm512_load_si512(x + (v * kRows + r) * kVector);
        tile.lanes[r][o] = Dot(tile.lanes[r][o], xv, w[v]);
      }
    }
  }
}

template <typename Unpacker, int kRows, int kOutputs>
void DirectTile(const MatmulParams& p, const Unpacker& shared, const DirectPiece& piece, int64_t n,
                int64_t kept_at) {
  const Unpacker unpacker = shared;  // in registers: DirectGroup forgets what is in memory
  const int64_t stride = PackedStride(p.order, p.w.k);
  const int64_t first_group = piece.begin / Unpacker::kGroup;
  const uint8_t* codes = unpacker.Codes(n) + first_group * Unpacker::kCodeBytes;
  const uint8_t* scales = unpacker.Scales(n) + first_group * Unpacker::kScaleBytes;
  const uint16_t* x = piece.x;
  Tile<kRows, kOutputs> tile;
  if (piece.begin == 0) {
    tile.Clear();
  } else {
    tile.Resume(piece.kept + kept_at, kDirectBlock);
  }
  int64_t left = p.w.k - piece.begin;
  for (int64_t at = piece.begin; at < piece.end; at += Unpacker::kGroup) {
    if (left >= Unpacker::kGroup) {
      DirectGroup<Unpacker, kRows, kOutputs, true>(unpacker, x, codes, scales, left, tile);
    } else {
      DirectGroup<Unpacker, kRows, kOutputs, false>(unpacker, x, codes, scales, left, tile);
    }
    x += Unpacker::kGroup * kRows;
    codes += Unpacker::kCodeBytes;
    scales += Unpacker::kScaleBytes;
    left -= Unpacker::kGroup;
  }
  if (piece.end < stride) return tile.Keep(piece.kept + kept_at, kDirectBlock);
  tile.Finish(p.y + n, p.y_stride);
}

// Rows side by side, operand vector by operand vector.
template <int kRows>
void InterleaveRows(const MatmulParams& p, int64_t stride, uint16_t* out) {
  for (int r = 0; r < kRows; ++r) {
    const uint16_t* x = RowOf(p, r, stride);
    for (int64_t at = 0; at < stride; at += kVector) {
      _mm512_store_si512(out + at * kRows + r * kVector, _mm512_loadu_si512(x + at));
    }
  }
}

// Outputs [begin, end) in blocks, each of them piece by piece.
template <typename Unpacker, int kRows>
void FewRows(const MatmulParams& p, const Unpacker& unpacker, int64_t begin, int64_t end) {
  constexpr int kOutputs = DirectOutputs<Unpacker>(kRows);
  constexpr int64_t kWidth = kDirectBytes / (kRows * 2 * 128) * 128;
  const int64_t stride = PackedStride(p.order, p.w.k);
  auto* kept =
      static_cast<__m512*>(workspace.Get(kRows * kDirectBlock * sizeof(__m512) +
                                         static_cast<size_t>(kRows * stride) * sizeof(uint16_t)));
  auto* rows = reinterpret_cast<uint16_t*>(kept + kRows * kDirectBlock);
  InterleaveRows<kRows>(p, stride, rows);
  for (int64_t first = begin; first < end; first += kDirectBlock) {
    const int64_t stop = first + kDirectBlock < end ? first + kDirectBlock : end;
    for (int64_t at = 0; at < stride; at += kWidth) {
      const DirectPiece piece{.x = rows + at * kRows,
                              .begin = at,
                              .end = at + kWidth < stride ? at + kWidth : stride,
                              .kept = kept};
      for (int64_t n = first; n < stop;) {
        // Outputs of a tile share their scales.
        const bool together = !Unpacker::kSharedScales || n % 32 + kOutputs <= 32;
        if (n + kOutputs <= stop && together) {
          DirectTile<Unpacker, kRows, kOutputs>(p, unpacker, piece, n, n - first);
          n += kOutputs;
        } else {
          DirectTile<Unpacker, kRows, 1>(p, unpacker, piece, n, n - first);
          n += 1;
        }
      }
    }
    if (!p.round) continue;
    for (int r = 0; r < kRows; ++r) RoundRow(p.y + r * p.y_stride + first, stop - first);
  }
}

// --------------------------------------------------------------------------------- many rows ----

// Weight rows unpacked tile by tile: for every tile of kTileOutputs rows (the last may have fewer)
// [stride / 32][rows of the tile] vectors.
struct Panel {
  __m512i* vectors;
  int64_t first;  // output
  int64_t count;
  float* sums;  // [kTileRows][kPanelOutputs] of the rows at hand

  // Codes of the panel after this one, asked for a few lines per tile while this one is multiplied.
  const uint8_t* ahead;
  const uint8_t* ahead_end;
  int64_t ahead_step;  // bytes per tile

  [[gnu::always_inline]] void AskAhead() {
    const uint8_t* stop = ahead + ahead_step < ahead_end ? ahead + ahead_step : ahead_end;
    for (; ahead < stop; ahead += kLine) __builtin_prefetch(ahead, 0, 2);
  }

  int64_t TileCount(int64_t o) const { return count - o < kTileOutputs ? count - o : kTileOutputs; }
  __m512i* TileAt(int64_t o, int64_t stride) const { return vectors + o * (stride / kVector); }
};

// One weight row to every step-th vector from `out` on.
template <typename Unpacker>
void UnpackRow(const Unpacker& unpacker, const MatmulParams& p, int64_t row, int64_t step,
               __m512i* out) {
  const uint8_t* codes = unpacker.Codes(row);
  const uint8_t* scales = unpacker.Scales(row);
  __m512i w[Unpacker::kVectors];
  int64_t left = p.w.k;
  for (; left >= Unpacker::kGroup; left -= Unpacker::kGroup) {
    __builtin_prefetch(codes + unpacker.code_stride());
    unpacker.template Unpack<true>(codes, left, unpacker.template Load<true>(scales, left), w);
#pragma GCC unroll 4
    for (int v = 0; v < Unpacker::kVectors; ++v, out += step) *out = w[v];
    codes += Unpacker::kCodeBytes;
    scales += Unpacker::kScaleBytes;
  }
  if (left == 0) return;
  unpacker.template Unpack<false>(codes, left, unpacker.template Load<false>(scales, left), w);
  for (int v = 0; v < Unpacker::kVectors; ++v, out += step) *out = w[v];
}

template <typename Unpacker>
void UnpackPanel(const MatmulParams& p, const Unpacker& unpacker, const Panel& panel) {
  const int64_t stride = PackedStride(p.order, p.w.k);
  for (int64_t o = 0; o < panel.count; ++o) {
    const int64_t first = o / kTileOutputs * kTileOutputs;
    UnpackRow(unpacker, p, panel.first + o, panel.TileCount(first),
              panel.TileAt(first, stride) + (o - first));
  }
}

// Rows [row, row + kRows) times outputs [o, o + kOutputs) of the panel.
template <int kRows, int kOutputs>
void PanelTile(const MatmulParams& p, const Panel& panel, int64_t row, int64_t o) {
  const int64_t stride = PackedStride(p.order, p.w.k);
  const uint16_t* x[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) x[r] = RowOf(p, row + r, stride);
  const __m512i* w = panel.TileAt(o, stride);
  Tile<kRows, kOutputs> tile;
  tile.Clear();
  for (int64_t at = 0; at < stride; at += kVector, w += kOutputs) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i xv = _mm512_loadu_si512(x[r] + at);
#pragma GCC unroll 8
      for (int i = 0; i < kOutputs; ++i) tile.lanes[r][i] = Dot(tile.lanes[r][i], xv, w[i]);
    }
  }
  tile.Finish(panel.sums + o, kPanelOutputs);
}

// Rows [row, row + kRows) times the whole panel.
template <int kRows>
void PanelTiles(const MatmulParams& p, Panel& panel, int64_t row) {
  int64_t o = 0;
  for (; o + kTileOutputs <= panel.count; o += kTileOutputs) {
    panel.AskAhead();
    PanelTile<kRows, kTileOutputs>(p, panel, row, o);
  }
  switch (panel.count - o) {
    case 1:
      PanelTile<kRows, 1>(p, panel, row, o);
      break;
    case 2:
      PanelTile<kRows, 2>(p, panel, row, o);
      break;
    case 3:
      PanelTile<kRows, 3>(p, panel, row, o);
      break;
    default:
      break;
  }
  for (int r = 0; r < kRows; ++r) {
    float* sums = panel.sums + r * kPanelOutputs;
    if (p.round) RoundRow(sums, kPanelOutputs);
    __builtin_memcpy(p.y + (row + r) * p.y_stride + panel.first, sums,
                     static_cast<size_t>(panel.count) * sizeof(float));
  }
}

void PanelRows(const MatmulParams& p, Panel& panel, int64_t row, int64_t count) {
  switch (count) {
    case 1:
      return PanelTiles<1>(p, panel, row);
    case 2:
      return PanelTiles<2>(p, panel, row);
    case 3:
      return PanelTiles<3>(p, panel, row);
    case 4:
      return PanelTiles<4>(p, panel, row);
    case 5:
      return PanelTiles<5>(p, panel, row);
    default:
      return PanelTiles<6>(p, panel, row);
  }
}

template <typename Unpacker>
void ManyRows(const MatmulParams& p, const Unpacker& unpacker, int64_t begin, int64_t end) {
  const int64_t stride = PackedStride(p.order, p.w.k);
  const int64_t vectors = kPanelOutputs * stride / kVector;
  constexpr int64_t kSumVectors = kTileRows * kPanelOutputs / 16;
  auto* memory = static_cast<__m512i*>(
      workspace.Get(static_cast<size_t>(vectors + kSumVectors) * sizeof(__m512i)));
  Panel panel{};
  panel.vectors = memory;
  panel.sums = reinterpret_cast<float*>(memory + vectors);
  // Tiles of almost equal height: a low one costs nearly as much as a high one.
  const int64_t tiles = (p.m + kTileRows - 1) / kTileRows;
  for (panel.first = begin; panel.first < end; panel.first += kPanelOutputs) {
    panel.count = end - panel.first < kPanelOutputs ? end - panel.first : kPanelOutputs;
    UnpackPanel(p, unpacker, panel);
    const int64_t next = panel.first + panel.count;
    const int64_t next_end = next + kPanelOutputs < end ? next + kPanelOutputs : end;
    panel.ahead = unpacker.Codes(next);
    panel.ahead_end = unpacker.Codes(next_end);
    panel.ahead_step =
        ((panel.ahead_end - panel.ahead) / (tiles * kPanelOutputs / kTileOutputs) + kLine) / kLine *
        kLine;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t row = t * p.m / tiles;
      PanelRows(p, panel, row, (t + 1) * p.m / tiles - row);
    }
  }
}

template <typename Unpacker>
void FewRowsOf(const MatmulParams& p, const Unpacker& unpacker, int64_t begin, int64_t end) {
  switch (p.m) {
    case 1:
      return FewRows<Unpacker, 1>(p, unpacker, begin, end);
    case 2:
      return FewRows<Unpacker, 2>(p, unpacker, begin, end);
    case 3:
      return FewRows<Unpacker, 3>(p, unpacker, begin, end);
    case 4:
      return FewRows<Unpacker, 4>(p, unpacker, begin, end);
    case 5:
      return FewRows<Unpacker, 5>(p, unpacker, begin, end);
    case 6:
      return FewRows<Unpacker, 6>(p, unpacker, begin, end);
    default:
      return;
  }
}

template <typename Unpacker>
void Multiply(const MatmulParams& p, int64_t begin, int64_t end) {
  const Unpacker unpacker(p.w);
  if (p.m > kMostFewRows) return ManyRows(p, unpacker, begin, end);
  const int64_t parts = (p.m + kTileRows - 1) / kTileRows;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = part * p.m / parts;
    FewRowsOf(RowsOf(p, first, (part + 1) * p.m / parts - first), unpacker, begin, end);
  }
}

// -------------------------------------------------------------------------- true fp32 weights ----

// 8 fp32 values as fp64; lanes past the row's end are zeros, which change no sum.
[[gnu::always_inline]] inline __m512d LoadWide(const float* data, __mmask8 lanes) {
  return _mm512_cvtps_pd(_mm256_maskz_loadu_ps(lanes, data));
}

// kRows rows times kOutputs outputs.  Products are exact in fp64, so one fma per product is the sum
// of numerics.md section 4.
template <int kRows, int kOutputs>
void F32Tile(const MatmulParams& p, int64_t first_row, int64_t n) {
  const int64_t k = p.w.k;
  const float* x[kRows];
  __m512d lanes[kRows][kOutputs];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = p.x_index != nullptr ? p.x_index[first_row + r] : first_row + r;
    x[r] = static_cast<const float*>(p.x) + row * k;
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) lanes[r][o] = _mm512_setzero_pd();
  }
  const float* w = static_cast<const float*>(p.w.data) + n * k;
  for (int64_t at = 0; at < k; at += 8) {
    const auto mask = static_cast<__mmask8>(k - at >= 8 ? 0xFF : (1 << (k - at)) - 1);
    __m512d wide[kOutputs];
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) wide[o] = LoadWide(w + o * k + at, mask);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512d xv = LoadWide(x[r] + at, mask);
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) lanes[r][o] = _mm512_fmadd_pd(xv, wide[o], lanes[r][o]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) {
      const float y = SumTree(lanes[r][o]);
      p.y[(first_row + r) * p.y_stride + n + o] = p.round ? RoundToBf16(y) : y;
    }
  }
}

template <int kRows>
void F32Rows(const MatmulParams& p, int64_t row, int64_t begin, int64_t end) {
  int64_t n = begin;
  for (; n + 4 <= end; n += 4) F32Tile<kRows, 4>(p, row, n);
  for (; n < end; ++n) F32Tile<kRows, 1>(p, row, n);
}

void MultiplyF32(const MatmulParams& p, int64_t begin, int64_t end) {
  int64_t row = 0;
  for (; row + 4 <= p.m; row += 4) F32Rows<4>(p, row, begin, end);
  for (; row < p.m; ++row) F32Rows<1>(p, row, begin, end);
}

}  // namespace

void Matmul(const MatmulParams& p, int64_t begin, int64_t end) {
  if (p.order == ColumnOrder::kF32) {
    if (p.w.format == WeightFormat::kF32) return MultiplyF32(p, begin, end);
    return scalar::Matmul(p, begin, end);  // --numerics fp32, for checking
  }
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

}  // namespace deepinfer::avx512
