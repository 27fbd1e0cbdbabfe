// Matrix products with vdpbf16ps.  Few rows: weights are unpacked in registers and used at once.
// Many rows: a panel of weight rows is unpacked to memory once and multiplied with tiles of rows.
// Every output has its own 16 lanes over the whole of K in both, so their bits are the same.
#include "kernels/avx512/avx512.h"
#include "kernels/avx512/unpack.h"
#include "kernels/scalar/scalar.h"

namespace deepinfer::avx512 {
namespace {

// A register tile: 6 rows times 4 outputs are 24 accumulators of the 32 registers; each step loads
// 10 vectors for 24 products, and 24 independent chains cover a latency of 6 at one a cycle four
// times.
constexpr int64_t kTileRows = 6;
constexpr int64_t kTileOutputs = 4;

// Weight rows unpacked together: 16 rows of 5,120 columns are 160 KiB of a second-level cache that
// also holds the tile's rows (60 KiB).
constexpr int64_t kPanelOutputs = 16;

thread_local Workspace workspace;

const uint16_t* RowOf(const MatmulParams& p, int64_t i, int64_t stride) {
  return static_cast<const uint16_t*>(p.x) + (p.x_index != nullptr ? p.x_index[i] : i) * stride;
}

void Store(const MatmulParams& p, int64_t row, int64_t n, __m512 lanes) {
  const float y = LaneTree(lanes);
  p.y[row * p.y_stride + n] = p.round ? RoundToBf16(y) : y;
}

// Up to kRows rows times kOutputs outputs from n on, unpacking as it goes.
template <typename Unpacker, int kRows, int kOutputs>
void MultiplyDirect(const MatmulParams& p, const Unpacker& unpacker, int64_t first_row, int64_t n,
                    int64_t stride) {
  const uint16_t* x[kRows];
  __m512 acc[kRows][kOutputs];
  for (int r = 0; r < kRows; ++r) {
    x[r] = RowOf(p, first_row + r, stride);
    for (int o = 0; o < kOutputs; ++o) acc[r][o] = _mm512_setzero_ps();
  }
  for (int64_t at = 0; at < stride; at += Unpacker::kGroup) {
    __m512i w[kOutputs][Unpacker::kVectors];
    for (int o = 0; o < kOutputs; ++o) unpacker.Unpack(n + o, at, w[o]);
    for (int v = 0; v < Unpacker::kVectors; ++v) {
      for (int r = 0; r < kRows; ++r) {
        const __m512i xv = _mm512_loadu_si512(x[r] + at + v * kVector);
        for (int o = 0; o < kOutputs; ++o) acc[r][o] = Dot(acc[r][o], xv, w[o][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) Store(p, first_row + r, n + o, acc[r][o]);
  }
}

template <typename Unpacker, int kRows>
void DirectRows(const MatmulParams& p, const Unpacker& unpacker, int64_t begin, int64_t end,
                int64_t stride) {
  int64_t n = begin;
  for (; n + kTileOutputs <= end; n += kTileOutputs) {
    MultiplyDirect<Unpacker, kRows, kTileOutputs>(p, unpacker, 0, n, stride);
  }
  for (; n < end; ++n) MultiplyDirect<Unpacker, kRows, 1>(p, unpacker, 0, n, stride);
}

// Rows [first, first + kRows) times outputs [n, n + kOutputs) of an unpacked panel.
template <int kRows, int kOutputs>
void MultiplyTile(const MatmulParams& p, const uint16_t* panel, int64_t first, int64_t n,
                  int64_t stride) {
  const uint16_t* x[kRows];
  __m512 acc[kRows][kOutputs];
  for (int r = 0; r < kRows; ++r) {
    x[r] = RowOf(p, first + r, stride);
    for (int o = 0; o < kOutputs; ++o) acc[r][o] = _mm512_setzero_ps();
  }
  for (int64_t at = 0; at < stride; at += kVector) {
    __m512i w[kOutputs];
    for (int o = 0; o < kOutputs; ++o) w[o] = _mm512_load_si512(panel + o * stride + at);
    for (int r = 0; r < kRows; ++r) {
      const __m512i xv = _mm512_loadu_si512(x[r] + at);
      for (int o = 0; o < kOutputs; ++o) acc[r][o] = Dot(acc[r][o], xv, w[o]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) Store(p, first + r, n + o, acc[r][o]);
  }
}

template <int kOutputs>
void TileRows(const MatmulParams& p, const uint16_t* panel, int64_t n, int64_t stride) {
  int64_t row = 0;
  for (; row + kTileRows <= p.m; row += kTileRows) {
    MultiplyTile<kTileRows, kOutputs>(p, panel, row, n, stride);
  }
  for (; row < p.m; ++row) MultiplyTile<1, kOutputs>(p, panel, row, n, stride);
}

template <typename Unpacker>
void PanelOutputs(const MatmulParams& p, const Unpacker& unpacker, int64_t begin, int64_t end,
                  int64_t stride) {
  auto* panel = static_cast<uint16_t*>(
      workspace.Get(static_cast<size_t>(kPanelOutputs * stride) * sizeof(uint16_t)));
  for (int64_t first = begin; first < end; first += kPanelOutputs) {
    const int64_t count = end - first < kPanelOutputs ? end - first : kPanelOutputs;
    for (int64_t o = 0; o < count; ++o) {
      uint16_t* out = panel + o * stride;
      for (int64_t at = 0; at < stride; at += Unpacker::kGroup) {
        __m512i w[Unpacker::kVectors];
        unpacker.Unpack(first + o, at, w);
        for (int v = 0; v < Unpacker::kVectors; ++v) {
          _mm512_store_si512(out + at + v * kVector, w[v]);
        }
      }
    }
    int64_t o = 0;
    for (; o + kTileOutputs <= count; o += kTileOutputs) {
      TileRows<kTileOutputs>(p, panel + o * stride, first + o, stride);
    }
    for (; o < count; ++o) TileRows<1>(p, panel + o * stride, first + o, stride);
  }
}

template <typename Unpacker>
void Multiply(const MatmulParams& p, int64_t begin, int64_t end) {
  const Unpacker unpacker(p.w);
  const int64_t stride = PackedStride(p.order, p.w.k);
  switch (p.m) {
    case 0:
      return;
    case 1:
      return DirectRows<Unpacker, 1>(p, unpacker, begin, end, stride);
    case 2:
      return DirectRows<Unpacker, 2>(p, unpacker, begin, end, stride);
    case 3:
      return DirectRows<Unpacker, 3>(p, unpacker, begin, end, stride);
    default:
      return PanelOutputs(p, unpacker, begin, end, stride);
  }
}

// True fp32 weights: exact fp64 products in 8 lanes.
void MultiplyF32(const MatmulParams& p, int64_t begin, int64_t end) {
  const int64_t k = p.w.k;
  for (int64_t n = begin; n < end; ++n) {
    const float* w = static_cast<const float*>(p.w.data) + n * k;
    for (int64_t i = 0; i < p.m; ++i) {
      const float* x =
          static_cast<const float*>(p.x) + (p.x_index != nullptr ? p.x_index[i] : i) * k;
      __m512d lanes = _mm512_setzero_pd();
      int64_t at = 0;
      for (; at + 8 <= k; at += 8) {
        const __m512d product = _mm512_mul_pd(_mm512_cvtps_pd(_mm256_loadu_ps(x + at)),
                                              _mm512_cvtps_pd(_mm256_loadu_ps(w + at)));
        lanes = _mm512_add_pd(lanes, product);
      }
      if (at < k) {
        const auto rest = static_cast<__mmask8>((1u << (k - at)) - 1);
        const __m512d product = _mm512_mul_pd(_mm512_cvtps_pd(_mm256_maskz_loadu_ps(rest, x + at)),
                                              _mm512_cvtps_pd(_mm256_maskz_loadu_ps(rest, w + at)));
        lanes = _mm512_mask_add_pd(lanes, rest, lanes, product);
      }
      const float y = SumTree(lanes);
      p.y[i * p.y_stride + n] = p.round ? RoundToBf16(y) : y;
    }
  }
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
