// Cached rows: quantising them, and pooling the tokens of a compressed entry.
#include <algorithm>

#include "kernels/math.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"
#include "tensor/row_codec.h"

namespace deepinfer::scalar {

void StoreRows(const StoreRowsParams& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    EncodeRow(p.format, {p.x + row * p.x_stride, static_cast<size_t>(p.dim)}, p.out[row]);
  }
}

void PoolGroups(const PoolGroupsParams& p, int64_t begin, int64_t end) {
  float weight[128];
  for (int64_t entry = begin; entry < end; ++entry) {
    const float* const* ug = p.ug + entry * p.ratio;
    for (int64_t i = 0; i < p.dim; ++i) {
      float max = ug[0][p.dim + i];
      for (int t = 1; t < p.ratio; ++t) max = std::max(max, ug[t][p.dim + i]);
      for (int t = 0; t < p.ratio; ++t) weight[t] = PreciseExp(ug[t][p.dim + i] - max);
      const float sum = Sum(p.ratio, [&](int64_t t) { return weight[t]; });
      const float pooled = Sum(p.ratio, [&](int64_t t) { return ug[t][i] * (weight[t] / sum); });
      p.y[entry * p.dim + i] = Round(pooled, p.round);
    }
  }
}

}  // namespace deepinfer::scalar
