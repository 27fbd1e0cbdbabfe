// Matrix products with two FMAs where AVX-512 has one vdpbf16ps.
//
// Activations and weights are widened to fp32 in lane order: of every operand vector the 16 odd
// elements, then the 16 even ones.  Few rows: activations are widened once, weights are unpacked in
// registers and meet all rows at once.  Many rows: a panel of weight rows is unpacked to memory and
// meets tiles of rows.  Both go through K in pieces that fit the caches; between pieces the lanes
// of every output lie in memory, so that their chains, and with them the bits, are the same.
//
// Everything here has internal linkage and instantiates nothing of the standard library: this file
// is compiled with its own flags.
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/unpack.h"
#include "kernels/scalar/scalar.h"
#include "kernels/workspace.h"

namespace deepinfer::avx2 {
namespace {

// Outputs whose lanes are kept between pieces.
constexpr int64_t kBlockOutputs = 64;

// ---- few rows ----
constexpr int64_t kDirectRows = 6;
// Floats of widened activations of a piece, which stay in the first-level cache while weights
// stream past.
constexpr int64_t kDirectFloats = 6 << 10;

// ---- many rows ----
// A register tile: 3 rows times 2 outputs are 12 accumulators of the 16 registers; each step loads
// 5 vectors for 6 products.
constexpr int64_t kTileRows = 3;
constexpr int64_t kTileOutputs = 2;
// Columns of a piece: 12 KiB of a tile's rows stay in the first-level cache, 256 KiB of unpacked
// weights in the second.
constexpr int64_t kPieceColumns = 1024;
// Rows that meet an unpacked piece: more cost memory for their lanes, fewer unpack more often.
constexpr int64_t kBlockRows = 96;

// Loops over a register tile say `unroll 8`: only loops that are gone before scalar replacement let
// GCC 12 keep the tile's array in registers.

thread_local Workspace workspace;

// The 16 lanes of one output.
struct Lanes {
  __m256 half[2];
};

// Columns [begin, end) of the packed rows.
struct Piece {
  int64_t begin;
  int64_t end;
};

[[gnu::always_inline]] inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

[[gnu::always_inline]] inline float RoundToBf16(float value) {
  uint32_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// +8, +4, +2, +1.
[[gnu::always_inline]] inline float LaneTree(const Lanes& lanes) {
  const __m256 eight = _mm256_add_ps(lanes.half[0], lanes.half[1]);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// Four of them: every step folds the same lanes as LaneTree, several sums side by side.
[[gnu::always_inline]] inline __m128 LaneTrees(const Lanes* of) {
  const auto eight = [&](int i) { return _mm256_add_ps(of[i].half[0], of[i].half[1]); };
  const auto four = [](__m256 x, __m256 y) {  // 128-bit lanes [x, y]
    return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
  };
  const __m256 ab = four(eight(0), eight(1));
  const __m256 cd = four(eight(2), eight(3));
  // In pairs [a, c | b, d], then each in its first lane.
  const __m256 two =
      _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xEE));
  const __m256 one =
      _mm256_add_ps(_mm256_shuffle_ps(two, two, 0x88), _mm256_shuffle_ps(two, two, 0xDD));
  return _mm_unpacklo_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1));
}

// The sums of `count` outputs side by side.
void Finish(const Lanes* kept, int64_t count, bool round, float* y) {
  int64_t at = 0;
  for (; at + 4 <= count; at += 4) _mm_storeu_ps(y + at, LaneTrees(kept + at));
  for (; at < count; ++at) y[at] = LaneTree(kept[at]);
  if (!round) return;
  for (at = 0; at < count; ++at) y[at] = RoundToBf16(y[at]);
}

void StartLanes(Lanes* kept, int64_t count) {
  for (int64_t i = 0; i < count; ++i) kept[i] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
}

// Columns of packed row i of the product to fp32 in lane order.
void Widen(const MatmulParams& p, int64_t i, const Piece& piece, float* out) {
  const int64_t row = p.x_index != nullptr ? p.x_index[i] : i;
  const uint16_t* x = static_cast<const uint16_t*>(p.x) + row * PackedStride(p.order, p.w.k);
  for (int64_t at = piece.begin; at < piece.end; at += kVector, out += kVector) {
    for (int half = 0; half < 2; ++half) {
      const __m256i words =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + at + half * kVector / 2));
      _mm256_store_ps(out + half * 8, OddWords(words));
      _mm256_store_ps(out + kVector / 2 + half * 8, EvenWords(words));
    }
  }
}

// The last group of a row that has not all of its columns, filled up with zeros.
template <class Unpacker>
struct LastGroup {
  alignas(32) uint8_t codes[2 * kHalfBytes];
  uint8_t scales[4];

  [[gnu::always_inline]] void Load(const Unpacker& unpacker, int64_t row, int64_t column) {
    const int64_t end = unpacker.w.k;
    const auto copy = [](uint8_t* to, const uint8_t* begin, const uint8_t* stop) {
      __builtin_memcpy(to, begin, static_cast<size_t>(stop - begin));
    };
    __builtin_memset(codes, 0, sizeof codes);
    __builtin_memset(scales, kScaleOfOne, sizeof scales);
    copy(codes, unpacker.CodesAt(row, column), unpacker.CodesAt(row, end));
    if (Unpacker::kScaleBytes == 0) return;
    copy(scales, unpacker.ScalesAt(row, column), unpacker.ScalesAt(row, end));
  }
};

// ---------------------------------------------------------------------------------- few rows ----

// What all tiles of a piece share.
template <class Unpacker>
struct DirectPiece {
  const Unpacker& unpacker;
  Piece piece;
  const float* x;  // [rows][x_stride] widened
  int64_t x_stride;
  Lanes* kept;  // [rows][kBlockOutputs]
};

// A group of one output.
template <class Unpacker>
struct OutputGroup {
  const uint8_t* codes;
  typename Unpacker::Scales scales;
};

template <class Unpacker, int kRows, int kOutputs>
struct DirectTile {
  __m256 lanes[kRows][kOutputs][2];

  [[gnu::always_inline]] void Load(const Lanes* kept) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) {
        lanes[r][o][0] = kept[r * kBlockOutputs + o].half[0];
        lanes[r][o][1] = kept[r * kBlockOutputs + o].half[1];
      }
    }
  }
  [[gnu::always_inline]] void Keep(Lanes* kept) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) {
        kept[r * kBlockOutputs + o] = {lanes[r][o][0], lanes[r][o][1]};
      }
    }
  }
  // One group of every output; x: its columns of the first row.  The chains of all outputs take
  // their steps in turn: a processor that waits for one finds work in the others.
  [[gnu::always_inline]] void Add(const OutputGroup<Unpacker> (&groups)[kOutputs], const float* x,
                                  int64_t x_stride) {
#pragma GCC unroll 8
    for (int half = 0; half < 2; ++half) {
      __m256 w[kOutputs][2 * Unpacker::kVectors];
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) {
        Unpacker::UnpackHalf(groups[o].codes, groups[o].scales, half, w[o]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < 2 * Unpacker::kVectors; ++i) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const __m256 xv = _mm256_load_ps(x + r * x_stride + i * kVector / 2 + half * 8);
#pragma GCC unroll 8
          for (int o = 0; o < kOutputs; ++o) {
            lanes[r][o][half] = _mm256_fmadd_ps(xv, w[o][i], lanes[r][o][half]);
          }
        }
      }
    }
  }
};

// All rows times outputs [n, n + kOutputs), which share their scales where rows do; `o` is where
// their lanes are kept.
template <class Unpacker, int kRows, int kOutputs>
void MultiplyDirect(const DirectPiece<Unpacker>& job, int64_t n, int64_t o) {
  constexpr int64_t kGroup = Unpacker::kGroup;
  const Unpacker& unpacker = job.unpacker;
  const Piece& piece = job.piece;
  const int64_t whole = Min(unpacker.w.k / kGroup * kGroup, piece.end);
  DirectTile<Unpacker, kRows, kOutputs> tile;
  tile.Load(job.kept + o);
  OutputGroup<Unpacker> groups[kOutputs];
  for (int64_t at = piece.begin; at < whole; at += kGroup) {
    auto scales = Unpacker::LoadScales(unpacker.ScalesAt(n, at));
#pragma GCC unroll 8
    for (int i = 0; i < kOutputs; ++i) {
      // The rows that follow: far enough ahead of the use to hide the latency of memory.
      __builtin_prefetch(unpacker.CodesAt(n + kOutputs + i, at));
      if constexpr (Unpacker::kScaleRows == 1) {
        scales = Unpacker::LoadScales(unpacker.ScalesAt(n + i, at));
      }
      groups[i] = {unpacker.CodesAt(n + i, at), scales};
    }
    tile.Add(groups, job.x + (at - piece.begin), job.x_stride);
  }
  if (whole < piece.end) {
    LastGroup<Unpacker> last[kOutputs];
#pragma GCC unroll 8
    for (int i = 0; i < kOutputs; ++i) {
      last[i].Load(unpacker, n + i, whole);
      groups[i] = {last[i].codes, Unpacker::LoadScales(last[i].scales)};
    }
    tile.Add(groups, job.x + (whole - piece.begin), job.x_stride);
  }
  tile.Keep(job.kept + o);
}

// Outputs per tile: as many chains as cover the latency of a sum, in 16 registers.
constexpr int DirectOutputs(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

// Outputs [begin, end), at most kBlockOutputs, of a piece.
template <class Unpacker, int kRows>
void DirectOutputRange(const DirectPiece<Unpacker>& job, int64_t begin, int64_t end) {
  constexpr int kOutputs = DirectOutputs(kRows);
  for (int64_t n = begin; n < end;) {
    const int64_t together = Unpacker::kScaleRows == 1
                                 ? end - n
                                 : Min(end - n, Unpacker::kScaleRows - n % Unpacker::kScaleRows);
    if (kOutputs <= together) {
      MultiplyDirect<Unpacker, kRows, kOutputs>(job, n, n - begin);
      n += kOutputs;
    } else {
      MultiplyDirect<Unpacker, kRows, 1>(job, n, n - begin);
      n += 1;
    }
  }
}

template <class Unpacker, int kRows>
void FewRows(const MatmulParams& p, const Unpacker& unpacker, int64_t begin, int64_t end) {
  constexpr int64_t kWidth = kDirectFloats / kRows / 128 * 128;
  const int64_t stride = PackedStride(p.order, p.w.k);
  float* x = workspace.Array<float>(kRows * (stride + kBlockOutputs * 16));
  auto* kept = reinterpret_cast<Lanes*>(x + kRows * stride);
  for (int r = 0; r < kRows; ++r) Widen(p, r, {0, stride}, x + r * stride);
  for (; begin < end; begin += kBlockOutputs) {
    const int64_t stop = Min(begin + kBlockOutputs, end);
    StartLanes(kept, kRows * kBlockOutputs);
    for (int64_t at = 0; at < stride; at += kWidth) {
      const DirectPiece<Unpacker> job{.unpacker = unpacker,
                                      .piece = {at, Min(at + kWidth, stride)},
                                      .x = x + at,
                                      .x_stride = stride,
                                      .kept = kept};
      DirectOutputRange<Unpacker, kRows>(job, begin, stop);
    }
    for (int r = 0; r < kRows; ++r) {
      Finish(kept + r * kBlockOutputs, stop - begin, p.round, p.y + r * p.y_stride + begin);
    }
  }
}

// --------------------------------------------------------------------------------- many rows ----

// A piece of up to kBlockOutputs weight rows, unpacked in lane order.
struct Panel {
  int64_t first;  // output
  int64_t count;
  Piece piece;
  float* weights;  // [count][width]
  float* x;        // [kTileRows][width]: the rows at hand
  Lanes* kept;     // [rows of the block][kBlockOutputs]

  int64_t Width() const { return piece.end - piece.begin; }
};

template <class Unpacker>
[[gnu::always_inline]] inline void UnpackGroup(const uint8_t* codes, const uint8_t* scale_bytes,
                                               float* out) {
  const auto scales = Unpacker::LoadScales(scale_bytes);
#pragma GCC unroll 8
  for (int half = 0; half < 2; ++half) {
    __m256 w[2 * Unpacker::kVectors];
    Unpacker::UnpackHalf(codes, scales, half, w);
#pragma GCC unroll 8
    for (int i = 0; i < 2 * Unpacker::kVectors; ++i) {
      _mm256_store_ps(out + i * kVector / 2 + half * 8, w[i]);
    }
  }
}

template <class Unpacker>
void UnpackPanel(const Unpacker& unpacker, const Panel& panel) {
  constexpr int64_t kGroup = Unpacker::kGroup;
  const int64_t whole = Min(unpacker.w.k / kGroup * kGroup, panel.piece.end);
  float* out = panel.weights;
  for (int64_t n = panel.first; n < panel.first + panel.count; ++n) {
    for (int64_t at = panel.piece.begin; at < whole; at += kGroup, out += kGroup) {
      __builtin_prefetch(unpacker.CodesAt(n + 1, at));
      UnpackGroup<Unpacker>(unpacker.CodesAt(n, at), unpacker.ScalesAt(n, at), out);
    }
    if (whole == panel.piece.end) continue;
    LastGroup<Unpacker> last;
    last.Load(unpacker, n, whole);
    UnpackGroup<Unpacker>(last.codes, last.scales, out);
    out += kGroup;
  }
}

// The rows at hand times outputs [o, o + kOutputs) of the panel.
template <int kRows, int kOutputs>
void PanelTile(const Panel& panel, Lanes* kept, int64_t o) {
  const int64_t width = panel.Width();
  const float* x = panel.x;
  const float* w = panel.weights + o * width;
  __m256 lanes[kRows][kOutputs][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kOutputs; ++i) {
      lanes[r][i][0] = kept[r * kBlockOutputs + o + i].half[0];
      lanes[r][i][1] = kept[r * kBlockOutputs + o + i].half[1];
    }
  }
  for (int64_t at = 0; at < width; at += kVector / 2) {  // the odd elements, then the even ones
#pragma GCC unroll 8
    for (int half = 0; half < 2; ++half) {
      __m256 wv[kOutputs];
#pragma GCC unroll 8
      for (int i = 0; i < kOutputs; ++i) wv[i] = _mm256_load_ps(w + i * width + at + half * 8);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        __m256 xv = _mm256_load_ps(x + r * width + at + half * 8);
        asm("" : "+x"(xv));  // in a register: GCC would read it again for every output
#pragma GCC unroll 8
        for (int i = 0; i < kOutputs; ++i) {
          lanes[r][i][half] = _mm256_fmadd_ps(xv, wv[i], lanes[r][i][half]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kOutputs; ++i) {
      kept[r * kBlockOutputs + o + i] = {lanes[r][i][0], lanes[r][i][1]};
    }
  }
}

// Rows [row, row + kRows) times the whole panel; `kept` is of the first one.
template <int kRows>
void PanelTiles(const MatmulParams& p, const Panel& panel, int64_t row, Lanes* kept) {
  for (int r = 0; r < kRows; ++r) Widen(p, row + r, panel.piece, panel.x + r * panel.Width());
  int64_t o = 0;
  for (; o + kTileOutputs <= panel.count; o += kTileOutputs) {
    PanelTile<kRows, kTileOutputs>(panel, kept, o);
  }
  if (o < panel.count) PanelTile<kRows, 1>(panel, kept, o);
}

void PanelRows(const MatmulParams& p, const Panel& panel, const Piece& rows) {
  for (int64_t row = rows.begin; row < rows.end; row += kTileRows) {
    Lanes* kept = panel.kept + (row - rows.begin) * kBlockOutputs;
    switch (rows.end - row) {
      case 1:
        PanelTiles<1>(p, panel, row, kept);
        break;
      case 2:
        PanelTiles<2>(p, panel, row, kept);
        break;
      default:
        PanelTiles<3>(p, panel, row, kept);
        break;
    }
  }
}

template <class Unpacker>
void ManyRows(const MatmulParams& p, const Unpacker& unpacker, int64_t begin, int64_t end) {
  const int64_t stride = PackedStride(p.order, p.w.k);
  const int64_t pieces = (stride + kPieceColumns - 1) / kPieceColumns;
  const int64_t width = (stride + pieces * 128 - 1) / (pieces * 128) * 128;
  const int64_t block_rows = Min(p.m, kBlockRows);
  Panel panel{};
  panel.weights =
      workspace.Array<float>((kBlockOutputs + kTileRows) * width + block_rows * kBlockOutputs * 16);
  panel.x = panel.weights + kBlockOutputs * width;
  panel.kept = reinterpret_cast<Lanes*>(panel.x + kTileRows * width);
  for (panel.first = begin; panel.first < end; panel.first += kBlockOutputs) {
    panel.count = Min(kBlockOutputs, end - panel.first);
    for (int64_t row = 0; row < p.m; row += block_rows) {
      const Piece rows{row, Min(row + block_rows, p.m)};
      StartLanes(panel.kept, (rows.end - row) * kBlockOutputs);
      for (int64_t at = 0; at < stride; at += width) {
        panel.piece = {at, Min(at + width, stride)};
        UnpackPanel(unpacker, panel);
        PanelRows(p, panel, rows);
      }
      for (int64_t r = row; r < rows.end; ++r) {
        Finish(panel.kept + (r - row) * kBlockOutputs, panel.count, p.round,
               p.y + r * p.y_stride + panel.first);
      }
    }
  }
}

template <class Unpacker>
void Multiply(const MatmulParams& p, int64_t begin, int64_t end) {
  const Unpacker unpacker{p.w};
  switch (p.m) {
    case 0:
      return;
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
    case kDirectRows:
      return FewRows<Unpacker, kDirectRows>(p, unpacker, begin, end);
    default:
      return ManyRows(p, unpacker, begin, end);
  }
}

// -------------------------------------------------------------------------- true fp32 weights ----

// Folds the 8 fp64 lanes of a sum: +4, +2, +1; rounded to fp32 once.
[[gnu::always_inline]] inline float SumTree(__m256d low, __m256d high) {
  const __m256d four = _mm256_add_pd(low, high);
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return static_cast<float>(_mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two))));
}

// Where the rows of a tile of true fp32 products begin.
template <int kRows, int kOutputs>
struct F32Tile {
  const float* x[kRows];
  const float* w;  // rows k apart
  int64_t k;
  __m256d lanes[kRows][kOutputs][2];

  // Eight columns.  Products are exact in fp64, so one fma per product is the sum of numerics.md
  // section 4.  `load` reads four values of a row at an offset.
  template <class Load>
  [[gnu::always_inline]] void Add(int64_t at, const Load& load) {
#pragma GCC unroll 8
    for (int half = 0; half < 2; ++half) {
      __m256d wide[kOutputs];
#pragma GCC unroll 8
      for (int o = 0; o < kOutputs; ++o) wide[o] = load(w + o * k, at + 4 * half);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256d xv = load(x[r], at + 4 * half);
#pragma GCC unroll 8
        for (int o = 0; o < kOutputs; ++o) {
          lanes[r][o][half] = _mm256_fmadd_pd(xv, wide[o], lanes[r][o][half]);
        }
      }
    }
  }
};

template <int kRows, int kOutputs>
void MultiplyF32Tile(const MatmulParams& p, int64_t first_row, int64_t n) {
  const int64_t k = p.w.k;
  F32Tile<kRows, kOutputs> tile;
  tile.w = static_cast<const float*>(p.w.data) + n * k;
  tile.k = k;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = p.x_index != nullptr ? p.x_index[first_row + r] : first_row + r;
    tile.x[r] = static_cast<const float*>(p.x) + row * k;
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) {
      tile.lanes[r][o][0] = _mm256_setzero_pd();
      tile.lanes[r][o][1] = _mm256_setzero_pd();
    }
  }
  const int64_t whole = k / 8 * 8;
  for (int64_t at = 0; at < whole; at += 8) {
    tile.Add(at,
             [](const float* row, int64_t i) { return _mm256_cvtps_pd(_mm_loadu_ps(row + i)); });
  }
  if (whole < k) {
    // Lanes past the row's end are zeros, which change no sum.
    tile.Add(whole, [k](const float* row, int64_t i) {
      const __m128i lane = _mm_setr_epi32(0, 1, 2, 3);
      const __m128i mask = _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(k - i)), lane);
      return _mm256_cvtps_pd(_mm_maskload_ps(row + i, mask));
    });
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) {
      const float y = SumTree(tile.lanes[r][o][0], tile.lanes[r][o][1]);
      p.y[(first_row + r) * p.y_stride + n + o] = p.round ? RoundToBf16(y) : y;
    }
  }
}

template <int kRows, int kOutputs>
void MultiplyF32Rows(const MatmulParams& p, int64_t row, int64_t begin, int64_t end) {
  int64_t n = begin;
  for (; n + kOutputs <= end; n += kOutputs) MultiplyF32Tile<kRows, kOutputs>(p, row, n);
  for (; n < end; ++n) MultiplyF32Tile<kRows, 1>(p, row, n);
}

void MultiplyF32(const MatmulParams& p, int64_t begin, int64_t end) {
  int64_t row = 0;
  for (; row + 2 <= p.m; row += 2) MultiplyF32Rows<2, 3>(p, row, begin, end);
  if (row < p.m) MultiplyF32Rows<1, 4>(p, row, begin, end);
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

}  // namespace deepinfer::avx2
