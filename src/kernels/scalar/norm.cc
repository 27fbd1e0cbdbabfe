// Embedding, RMSNorm, rotary positions, and small elementwise ops.
#include <algorithm>

#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"
#include "tensor/fp8.h"

namespace deepinfer::scalar {

void Embed(const EmbedParams& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const uint16_t* source = p.override_rows != nullptr ? p.override_rows[row] : nullptr;
    if (source == nullptr) source = p.table + p.ids[row] * p.dim;
    for (int64_t s = 0; s < p.num_streams; ++s) {
      float* out = p.out + (row * p.num_streams + s) * p.dim;
      for (int64_t i = 0; i < p.dim; ++i) out[i] = Bf16ToFloat(source[i]);
    }
  }
}

void RmsNorm(const RmsNormParams& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.x_stride;
    float* y = p.y + row * p.dim;
    const float mean = SumOfSquares(x, p.dim) * (1.0f / static_cast<float>(p.dim));
    const float inverse = InverseSqrt(mean + p.eps);
    for (int64_t i = 0; i < p.dim; ++i) {
      y[i] = Round(Bf16ToFloat(p.weight[i]) * (x[i] * inverse), p.round);
    }
  }
}

void Rope(const RopeParams& p, int64_t begin, int64_t end) {
  const int64_t pairs = p.rope_dim / 2;
  for (int64_t row = begin; row < end; ++row) {
    const float* cos = p.cos + row * pairs;
    const float* sin = p.sin + row * pairs;
    for (int64_t head = 0; head < p.heads; ++head) {
      float* x = p.x + (row * p.heads + head + 1) * p.dim - p.rope_dim;
      for (int64_t k = 0; k < pairs; ++k) {
        const float a = x[2 * k];
        const float b = x[2 * k + 1];
        const float s = p.inverse ? -sin[k] : sin[k];
        x[2 * k] = Round(a * cos[k] - b * s, p.round);
        x[2 * k + 1] = Round(a * s + b * cos[k], p.round);
      }
    }
  }
}

void AddRows(const AddRowsParams& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.dim;
    float* y = p.y + (p.index != nullptr ? p.index[row] : row) * p.dim;
    for (int64_t i = 0; i < p.dim; ++i) y[i] += x[i];
  }
}

void Scale(const ScaleParams& p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) p.x[i] = Round(p.x[i] * p.factor, p.round);
}

void DecodeFp8Rows(const DecodeFp8RowsParams& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const uint8_t* codes = p.codes + row * p.dim;
    const uint8_t* scales = p.scales + row * (p.dim / 32);
    float* y = p.y + row * p.dim;
    for (int64_t i = 0; i < p.dim; ++i) y[i] = kE4M3Values[codes[i]] * DecodeE8M0(scales[i / 32]);
  }
}

}  // namespace deepinfer::scalar
