#include "model/layers/linear.h"

#include "base/check.h"
#include "kernels/column_order.h"
#include "kernels/ops.h"

namespace deepinfer {
namespace {

Operand PackFor(Step& step, const float* x, int64_t rows, const WeightView& reader, bool quantize) {
  const ColumnOrder order = step.round() ? OrderOf(reader.format) : ColumnOrder::kF32;
  if (order == ColumnOrder::kF32) return {.data = x, .order = order, .rows = rows};
  auto* packed = step.scratch().Alloc<uint16_t>(rows * PackedStride(order, reader.k));
  Pack(step.context,
       {.x = x,
        .x_stride = reader.k,
        .k = reader.k,
        .quantize = quantize,
        .order = order,
        .out = packed},
       rows);
  return {.data = packed, .order = order, .rows = rows};
}

void Product(Step& step, const Operand& x, const WeightView& w, const LinearOutput& out,
             bool round) {
  Matmul(step.context, {.x = x.data,
                        .order = x.order,
                        .x_index = out.x_index,
                        .m = out.rows < 0 ? x.rows : out.rows,
                        .w = w,
                        .y = out.y,
                        .y_stride = out.stride,
                        .round = round});
}

}  // namespace

Operand Quantize(Step& step, const float* x, int64_t rows, const WeightView& reader) {
  return PackFor(step, x, rows, reader, true);
}

Operand Unquantized(Step& step, const float* x, int64_t rows, const WeightView& reader) {
  return PackFor(step, x, rows, reader, false);
}

void Linear(Step& step, const Operand& x, const WeightView& w, const LinearOutput& out) {
  Product(step, x, w, out, step.round());
}

void LinearF32(Step& step, const Operand& x, const WeightView& w, const LinearOutput& out) {
  Product(step, x, w, out, false);
}

WeightView RowsOf(const WeightView& w, int64_t first, int64_t count) {
  constexpr int64_t kScaleBlock = 32;
  const auto* data = static_cast<const std::byte*>(w.data);
  WeightView rows = w;
  rows.n = count;
  switch (w.format) {
    case WeightFormat::kF32:
      rows.data = data + first * w.k * 4;
      break;
    case WeightFormat::kBf16:
      rows.data = data + first * w.k * 2;
      break;
    case WeightFormat::kFp8:
      CHECK_EQ(first % kScaleBlock, 0);
      rows.data = data + first * w.k;
      rows.scales = w.scales + first / kScaleBlock * (w.k / kScaleBlock);
      break;
    case WeightFormat::kFp4:
      rows.data = data + first * w.k / 2;
      rows.scales = w.scales + first * (w.k / kScaleBlock);
      break;
  }
  return rows;
}

void Norm(Step& step, const float* x, const uint16_t* weight, int64_t rows, int64_t dim, float* y) {
  RmsNorm(step.context,
          {.x = x,
           .x_stride = dim,
           .weight = weight,
           .dim = dim,
           .eps = step.config().rms_norm_eps,
           .round = step.round(),
           .y = y},
          rows);
}

}  // namespace deepinfer
