// The gated feed-forward network of one or many experts over the rows that each of them sees
// (model.md section 8): y[row] += w2 q(weight * silu(w1 x) * (w3 x)), gate and up clamped.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/exec_context.h"
#include "kernels/kernels.h"

namespace deepinfer {

// Rows that go through a step together, summed over experts: at the released dimensions their
// gates, ups and results take 20 MB.  An expert with more rows has them all together.
inline constexpr int64_t kFfnGroupRows = 512;

struct FfnExpert {
  WeightView w1;         // gate [inner, hidden]
  WeightView w3;         // up   [inner, hidden]
  WeightView w2;         // down [hidden, inner]
  const int32_t* index;  // [rows] rows of x and y, each once; null: rows 0, 1, ...
  const float* weights;  // [rows] factors inside the second quantisation; null: none
  int64_t rows;
};

struct GatedFfnParams {
  const void* x;      // packed activations [*, PackedStride(order, hidden)]
  ColumnOrder order;  // of x: the one that w1 and w3 read
  // All of one weight format, inner and hidden size.  Results are added in this order.
  std::span<const FfnExpert> experts;
  float limit;  // gate <= limit, |up| <= limit
  bool round;   // release numerics: intermediate results are bf16, w2 reads quantised activations
  float* y;     // [*, hidden] fp32, in place
};

// Experts go through each of the four steps together as long as their rows are few, so that a
// decoding step meets four barriers and not four for every expert.
void GatedFfn(ExecContext& context, const GatedFfnParams& params);

}  // namespace deepinfer
