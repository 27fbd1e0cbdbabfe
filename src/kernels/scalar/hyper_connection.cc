// Hyper-connections (model.md section 5) and the n-gram gate (section 9.3), which reads the same
// streams.
#include <algorithm>
#include <vector>

#include "kernels/math.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"

namespace deepinfer::scalar {
namespace {

float InverseRms(const float* x, int64_t n, float eps) {
  return 1.0f / std::sqrt(LaneSumOfSquares(x, n) * (1.0f / static_cast<float>(n)) + eps);
}

// c[i][j] /= sum_j c[i][j] (+ eps)
void NormalizeRows(float* c, int s, float eps) {
  for (int i = 0; i < s; ++i) {
    float sum = c[i * s];
    for (int j = 1; j < s; ++j) sum += c[i * s + j];
    for (int j = 0; j < s; ++j) c[i * s + j] /= sum + eps;
  }
}

// c[i][j] /= sum_i c[i][j] + eps
void NormalizeColumns(float* c, int s, float eps) {
  for (int j = 0; j < s; ++j) {
    float sum = c[j];
    for (int i = 1; i < s; ++i) sum += c[i * s + j];
    for (int i = 0; i < s; ++i) c[i * s + j] /= sum + eps;
  }
}

// Softmax over j, then alternately rows and columns until nearly doubly stochastic.
void Sinkhorn(float* c, int s, int iters, float eps) {
  for (int i = 0; i < s; ++i) {
    const float max = *std::max_element(c + i * s, c + (i + 1) * s);
    for (int j = 0; j < s; ++j) c[i * s + j] = ExpF32(c[i * s + j] - max);
  }
  NormalizeRows(c, s, 0.0f);
  for (int i = 0; i < s * s; ++i) c[i] += eps;
  NormalizeColumns(c, s, eps);
  for (int iter = 1; iter < iters; ++iter) {
    NormalizeRows(c, s, eps);
    NormalizeColumns(c, s, eps);
  }
}

}  // namespace

void HcMixes(const HcMixesParams& p, int64_t begin, int64_t end) {
  const int s = p.num_streams;
  const int64_t count = int64_t{s} * (2 + s);
  for (int64_t row = begin; row < end; ++row) {
    const float inverse = InverseRms(p.h + row * s * p.dim, s * p.dim, p.rms_eps);
    const float* raw = p.raw + row * count;
    for (int j = 0; j < s; ++j) {
      const float pre = raw[j] * inverse * p.scale[0] + p.base[j];
      const float post = raw[s + j] * inverse * p.scale[1] + p.base[s + j];
      p.pre[row * s + j] = SigmoidF32(pre) + p.hc_eps;
      p.post[row * s + j] = 2.0f * SigmoidF32(post);
    }
    float* comb = p.comb + row * s * s;
    for (int i = 0; i < s * s; ++i) {
      comb[i] = raw[2 * s + i] * inverse * p.scale[2] + p.base[2 * s + i];
    }
    Sinkhorn(comb, s, p.sinkhorn_iters, p.hc_eps);
  }
}

void HcPre(const HcPreParams& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* h = p.h + row * p.num_streams * p.dim;
    const float* pre = p.pre + row * p.num_streams;
    for (int64_t i = 0; i < p.dim; ++i) {
      float acc = pre[0] * h[i];
      for (int j = 1; j < p.num_streams; ++j) acc = std::fma(pre[j], h[j * p.dim + i], acc);
      p.y[row * p.dim + i] = Round(acc, p.round);
    }
  }
}

void HcPost(const HcPostParams& p, int64_t begin, int64_t end) {
  const int s = p.num_streams;
  float old[8];
  for (int64_t row = begin; row < end; ++row) {
    float* h = p.h + row * s * p.dim;
    const float* comb = p.comb + row * s * s;
    for (int64_t i = 0; i < p.dim; ++i) {
      for (int j = 0; j < s; ++j) old[j] = h[j * p.dim + i];
      for (int j = 0; j < s; ++j) {
        float acc = comb[j] * old[0];
        for (int k = 1; k < s; ++k) acc = std::fma(comb[k * s + j], old[k], acc);
        acc = std::fma(p.post[row * s + j], p.y[row * p.dim + i], acc);
        h[j * p.dim + i] = Round(acc, p.round);
      }
    }
  }
}

void MeanStreams(const MeanStreamsParams& p, int64_t begin, int64_t end) {
  const float inverse = 1.0f / static_cast<float>(p.num_streams);
  for (int64_t row = begin; row < end; ++row) {
    const float* h = p.h + row * p.num_streams * p.dim;
    for (int64_t i = 0; i < p.dim; ++i) {
      float sum = h[i];
      for (int j = 1; j < p.num_streams; ++j) sum += h[j * p.dim + i];
      p.y[row * p.y_stride + i] = Round(sum * inverse, p.round);
    }
  }
}

void NgramGate(const NgramGateParams& p, int64_t begin, int64_t end) {
  const float root = 1.0f / std::sqrt(static_cast<float>(p.dim));
  for (int64_t row = begin; row < end; ++row) {
    if (p.is_image[row] != 0) continue;
    const float* kv = p.kv + row * (p.num_streams + 1) * p.dim;
    const float* value = kv + p.num_streams * p.dim;
    for (int j = 0; j < p.num_streams; ++j) {
      float* h = p.h + (row * p.num_streams + j) * p.dim;
      const float* key = kv + j * p.dim;
      float lane[kLanes] = {};
      for (int64_t i = 0; i < p.dim; ++i) {
        const float weight =
            Bf16ToFloat(p.q_weight[j * p.dim + i]) * Bf16ToFloat(p.k_weight[j * p.dim + i]);
        lane[i % kLanes] = std::fma(h[i] * weight, key[i], lane[i % kLanes]);
      }
      const float norm = InverseRms(h, p.dim, p.eps) * InverseRms(key, p.dim, p.eps);
      const float d = LaneTree(lane) * norm * root;
      const float gate = SigmoidF32(std::copysign(std::sqrt(std::max(std::fabs(d), 1e-6f)), d));
      for (int64_t i = 0; i < p.dim; ++i) h[i] = Round(h[i] + gate * value[i], p.round);
    }
  }
}

}  // namespace deepinfer::scalar
