// Activation packing and matrix products.
#include <vector>

#include "base/check.h"
#include "kernels/column_order.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"
#include "tensor/fp4.h"
#include "tensor/fp8.h"
#include "tensor/quant.h"

namespace deepinfer::scalar {
namespace {

// act_quant: x[0..k) becomes q * s, group by group.
void QuantizeRow(const float* x, int64_t k, float* out) {
  for (int64_t at = 0; at < k; at += kFp8Group) {
    const float scale = DecodeE8M0(Fp8Scale({x + at, static_cast<size_t>(kFp8Group)}));
    for (int64_t i = at; i < at + kFp8Group; ++i) {
      out[i] = kE4M3Values[EncodeE4M3(x[i] / scale)] * scale;
    }
  }
}

// Row n of a weight as fp32 values in natural order.
void DecodeWeightRow(const WeightView& w, int64_t n, float* out) {
  const int64_t k = w.k;
  switch (w.format) {
    case WeightFormat::kF32: {
      const float* row = static_cast<const float*>(w.data) + n * k;
      for (int64_t i = 0; i < k; ++i) out[i] = row[i];
      return;
    }
    case WeightFormat::kBf16: {
      const uint16_t* row = static_cast<const uint16_t*>(w.data) + n * k;
      for (int64_t i = 0; i < k; ++i) out[i] = Bf16ToFloat(row[i]);
      return;
    }
    case WeightFormat::kFp8: {
      const uint8_t* row = static_cast<const uint8_t*>(w.data) + n * k;
      const uint8_t* scales = w.scales + n / 32 * (k / 32);
      for (int64_t i = 0; i < k; ++i) out[i] = kE4M3Values[row[i]] * DecodeE8M0(scales[i / 32]);
      return;
    }
    case WeightFormat::kFp4: {
      const uint8_t* row = static_cast<const uint8_t*>(w.data) + n * (k / 2);
      const uint8_t* scales = w.scales + n * (k / 32);
      for (int64_t i = 0; i < k; ++i) {
        out[i] = kE2M1Values[NibbleOf(row, i)] * DecodeE8M0(scales[i / 32]);
      }
      return;
    }
  }
}

// The packed row as fp32 values.
void WidenRow(const void* x, int64_t row, int64_t stride, float* out) {
  const uint16_t* packed = static_cast<const uint16_t*>(x) + row * stride;
  for (int64_t i = 0; i < stride; ++i) out[i] = Bf16ToFloat(packed[i]);
}

}  // namespace

void Pack(const PackParams& p, int64_t begin, int64_t end) {
  const int64_t stride = PackedStride(p.order, p.k);
  std::vector<float> values(static_cast<size_t>(p.k));
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.x_stride;
    if (p.quantize) {
      QuantizeRow(x, p.k, values.data());
      x = values.data();
    }
    uint16_t* out = p.out + row * stride;
    for (int64_t at = 0; at < stride; ++at) {
      const int64_t column = ColumnAt(p.order, at);
      out[at] = column < p.k ? FloatToBf16(x[column]) : uint16_t{0};
    }
  }
}

void Matmul(const MatmulParams& p, int64_t begin, int64_t end) {
  const int64_t k = p.w.k;
  const int64_t stride = PackedStride(p.order, k);
  const bool fp32 = p.order == ColumnOrder::kF32;
  std::vector<float> natural(static_cast<size_t>(k));
  std::vector<float> w(static_cast<size_t>(stride));
  std::vector<float> wide(static_cast<size_t>(stride * p.m));
  for (int64_t i = 0; i < p.m && !fp32; ++i) {
    WidenRow(p.x, p.x_index != nullptr ? p.x_index[i] : i, stride, wide.data() + i * stride);
  }
  for (int64_t n = begin; n < end; ++n) {
    DecodeWeightRow(p.w, n, natural.data());
    for (int64_t at = 0; at < stride; ++at) {
      const int64_t column = ColumnAt(p.order, at);
      w[static_cast<size_t>(at)] = column < k ? natural[static_cast<size_t>(column)] : 0.0f;
    }
    for (int64_t i = 0; i < p.m; ++i) {
      const int64_t row = p.x_index != nullptr ? p.x_index[i] : i;
      const float y = fp32 ? DotF32(static_cast<const float*>(p.x) + row * stride, w.data(), k)
                           : DotOperands(wide.data() + i * stride, w.data(), stride);
      p.y[i * p.y_stride + n] = Round(y, p.round);
    }
  }
}

}  // namespace deepinfer::scalar
