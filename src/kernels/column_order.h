// How packed rows lie: which column of a row each element of an operand vector is
// (docs/formats/numerics.md section 2).
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace deepinfer {

// The order in which a weight format reads its activations.
constexpr ColumnOrder OrderOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return ColumnOrder::kF32;
    case WeightFormat::kBf16:
      return ColumnOrder::kNatural;
    case WeightFormat::kFp8:
      return ColumnOrder::kFp8;
    case WeightFormat::kFp4:
      return ColumnOrder::kFp4;
  }
  return ColumnOrder::kF32;
}

// Column that element `at` of a packed row holds; beyond k it is padding.
constexpr int64_t ColumnAt(ColumnOrder order, int64_t at) {
  const int64_t e = at % 32;
  switch (order) {
    case ColumnOrder::kFp8: {
      const int64_t v = at / 32 % 2;
      return at / 64 * 64 + 16 * (e / 8) + 8 * v + e % 8;
    }
    case ColumnOrder::kFp4: {
      const int64_t v = at / 32 % 4;
      return at / 128 * 128 + 4 * e + v;
    }
    case ColumnOrder::kF32:
    case ColumnOrder::kNatural:
      break;
  }
  return at;
}

// Rows [first, first + count) of a product.
[[gnu::always_inline]] inline MatmulParams RowsOf(const MatmulParams& params, int64_t first,
                                                  int64_t count) {
  MatmulParams rows = params;
  rows.m = count;
  rows.y += first * params.y_stride;
  if (params.x_index != nullptr) {
    rows.x_index += first;
  } else {
    const int64_t row_bytes =
        PackedStride(params.order, params.w.k) * (params.order == ColumnOrder::kF32 ? 4 : 2);
    rows.x = static_cast<const char*>(params.x) + first * row_bytes;
  }
  return rows;
}

}  // namespace deepinfer
