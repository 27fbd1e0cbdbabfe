// Routing and the gated activation of experts (model.md section 8).
#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/math.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"
#include "kernels/workspace.h"

namespace deepinfer::scalar {

void Route(const RouteParams& p, int64_t begin, int64_t end) {
  static thread_local Workspace workspace;
  const int64_t n = p.num_experts;
  auto* score = workspace.Array<float>(3 * n);
  float* biased = score + n;
  auto* order = reinterpret_cast<int32_t*>(biased + n);
  for (int64_t row = begin; row < end; ++row) {
    const float* logits = p.logits + row * p.num_experts;
    const float* bias = p.is_image[row] != 0 ? p.bias_image : p.bias;
    for (int64_t e = 0; e < n; ++e) {
      score[e] = std::sqrt(PreciseSoftplus(logits[e]));
      biased[e] = score[e] + bias[e];
    }
    std::iota(order, order + n, 0);
    const auto better = [&](int32_t a, int32_t b) {
      return biased[a] > biased[b] || (biased[a] == biased[b] && a < b);
    };
    const bool choice = p.top_k < p.num_experts;  // one more is sorted, for the margin
    std::partial_sort(order, order + p.top_k + (choice ? 1 : 0), order + n, better);
    int32_t* experts = p.experts + row * p.top_k;
    float* weights = p.weights + row * p.top_k;
    for (int j = 0; j < p.top_k; ++j) {
      experts[j] = order[j];
      weights[j] = score[experts[j]];
    }
    const float sum = Sum(p.top_k, [&](int64_t j) { return weights[j]; });
    for (int j = 0; j < p.top_k; ++j) {
      if (p.top_k > 1) weights[j] /= sum + 1e-20f;
      weights[j] *= p.scale;
    }
    if (p.margins == nullptr) continue;
    p.margins[row] = std::numeric_limits<float>::infinity();
    if (choice) {
      p.margins[row] = biased[order[p.top_k - 1]] - biased[order[p.top_k]];
    }
  }
}

void Swiglu(const SwigluParams& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t i = row * p.dim; i < (row + 1) * p.dim; ++i) {
      const float gate = std::min(p.gate[i], p.limit);
      const float up = std::min(std::max(p.up[i], -p.limit), p.limit);
      float y = SiluF32(gate) * up;
      if (p.row_weight != nullptr) y *= p.row_weight[row];
      p.y[i] = Round(y, p.round);
    }
  }
}

}  // namespace deepinfer::scalar
