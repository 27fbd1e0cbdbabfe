// Linear layers in the three roundings of model.md section 4: of a quantised activation, of a bf16
// activation, and without a final rounding.  In --numerics fp32 all three are plain fp32 products.
#pragma once

#include <cstdint>

#include "model/step.h"

namespace deepinfer {

// Activations as a weight format reads them; valid until the step's current scratch scope ends.
struct Operand {
  const void* data;
  ColumnOrder order;
  int64_t rows;
};

// act_quant, then the column order of `reader`.
Operand Quantize(Step& step, const float* x, int64_t rows, const WeightView& reader);
// bf16 values as they are, in the column order of `reader`.
Operand Unquantized(Step& step, const float* x, int64_t rows, const WeightView& reader);

// Where a product goes.
struct LinearOutput {
  float* y;                          // [rows, n]
  int64_t stride;                    // of y's rows
  const int32_t* x_index = nullptr;  // [rows] operand row of each output row; null: the same row
  int64_t rows = -1;                 // output rows; -1: as many as the operand has
};

// y = x w^T, rounded to bf16 in release numerics.
void Linear(Step& step, const Operand& x, const WeightView& w, const LinearOutput& out);
// y = x w^T, fp32.
void LinearF32(Step& step, const Operand& x, const WeightView& w, const LinearOutput& out);

inline void Linear(Step& step, const Operand& x, const WeightView& w, float* y) {
  Linear(step, x, w, LinearOutput{.y = y, .stride = w.n});
}
inline void LinearF32(Step& step, const Operand& x, const WeightView& w, float* y) {
  LinearF32(step, x, w, LinearOutput{.y = y, .stride = w.n});
}

// Rows [first, first + count) of a weight; FP8: both multiples of the scale block, 32.
WeightView RowsOf(const WeightView& w, int64_t first, int64_t count);

// y = RMSNorm(x) [rows, dim], rounded in release numerics; y may be x.
void Norm(Step& step, const float* x, const uint16_t* weight, int64_t rows, int64_t dim, float* y);

}  // namespace deepinfer
