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
  return InverseSqrt(SumOfSquares(x, n) * (1.0f / static_cast<float>(n)) + eps);
}

// c[i][j] /= sum_j c[i][j] (+ eps)
void NormalizeRows(float* c, int s, float eps) {
  for (int i = 0; i < s; ++i) {
    const float sum = Sum(s, [&](int64_t j) { return c[i * s + j]; });
    for (int j = 0; j < s; ++j) c[i * s + j] /= sum + eps;
  }
}

// c[i][j] /= sum_i c[i][j] + eps
void NormalizeColumns(float* c, int s, float eps) {
  for (int j = 0; j < s; ++j) {
    const float sum = Sum(s, [&](int64_t i) { return c[i * s + j]; });
    for (int i = 0; i < s; ++i) c[i * s + j] /= sum + eps;
  }
}

// Softmax over j, then alternately rows and columns until nearly doubly stochastic.
void Sinkhorn(float* c, int s, int iters, float eps) {
  for (int i = 0; i < s; ++i) {
    const float max = *std::max_element(c + i * s, c + (i + 1) * s);
    for (int j = 0; j < s; ++j) c[i * s + j] = PreciseExp(c[i * s + j] - max);
  }
  NormalizeRows(c, s, 0.0f);
  for (int i = 0; i < s * s; ++i) c[i] += eps;
  NormalizeColumns(c, s, eps);
  for (int iter = 1; iter < iters; ++iter) {
    NormalizeRows(c, s, eps);
    NormalizeColumns(c, s, eps);
  }
}

constexpr int kMaxStreams = 8;
constexpr int64_t kChunk = 64;  // channels that are mixed side by side

// Channels [first, first + count) of the streams, mixed: out[c] = sum over j of weight(j) *
// h[j][c], as Sum() adds it.  Up to 8 terms have a lane each; lanes that stay +0 change nothing, so
// the tree starts at the streams.
template <typename Weight>
void MixStreams(const float* h, int num_streams, int64_t stride, int64_t count,
                const Weight& weight, float* out) {
  double lane[kMaxStreams][kChunk] = {};
  for (int j = 0; j < num_streams; ++j) {
    const float w = weight(j);
    const float* x = h + j * stride;
    for (int64_t c = 0; c < count; ++c) lane[j][c] += w * x[c];
  }
  for (int width = kMaxStreams / 2; width > 0; width /= 2) {
    for (int i = 0; i < width && i + width < num_streams; ++i) {
      for (int64_t c = 0; c < count; ++c) lane[i][c] += lane[i + width][c];
    }
  }
  for (int64_t c = 0; c < count; ++c) out[c] = static_cast<float>(lane[0][c]);
}

}  // namespace

void MixesOfRow(const HcMixesParams& p, int64_t row, float inverse) {
  const int s = p.num_streams;
  const float* raw = p.raw + row * s * (2 + s);
  for (int j = 0; j < s; ++j) {
    const float pre = raw[j] * inverse * p.scale[0] + p.base[j];
    const float post = raw[s + j] * inverse * p.scale[1] + p.base[s + j];
    p.pre[row * s + j] = PreciseSigmoid(pre) + p.hc_eps;
    p.post[row * s + j] = 2.0f * PreciseSigmoid(post);
  }
  float* comb = p.comb + row * s * s;
  for (int i = 0; i < s * s; ++i) {
    comb[i] = raw[2 * s + i] * inverse * p.scale[2] + p.base[2 * s + i];
  }
  Sinkhorn(comb, s, p.sinkhorn_iters, p.hc_eps);
}

void HcMixes(const HcMixesParams& p, int64_t begin, int64_t end) {
  const int64_t n = p.num_streams * p.dim;
  for (int64_t row = begin; row < end; ++row) {
    MixesOfRow(p, row, InverseRms(p.h + row * n, n, p.rms_eps));
  }
}

void HcPre(const HcPreParams& p, int64_t begin, int64_t end) {
  float mixed[kChunk];
  for (int64_t row = begin; row < end; ++row) {
    const float* h = p.h + row * p.num_streams * p.dim;
    const float* pre = p.pre + row * p.num_streams;
    float* y = p.y + row * p.dim;
    for (int64_t at = 0; at < p.dim; at += kChunk) {
      const int64_t count = std::min(kChunk, p.dim - at);
      MixStreams(
          h + at, p.num_streams, p.dim, count, [pre](int j) { return pre[j]; }, mixed);
      for (int64_t c = 0; c < count; ++c) y[at + c] = Round(mixed[c], p.round);
    }
  }
}

void HcPost(const HcPostParams& p, int64_t begin, int64_t end) {
  const int s = p.num_streams;
  float old[kMaxStreams * kChunk];
  float mixed[kChunk];
  for (int64_t row = begin; row < end; ++row) {
    const float* comb = p.comb + row * s * s;
    for (int64_t at = 0; at < p.dim; at += kChunk) {
      const int64_t count = std::min(kChunk, p.dim - at);
      const float* y = p.y + row * p.dim + at;
      float* h = p.h + row * s * p.dim + at;
      for (int j = 0; j < s; ++j) std::copy_n(h + j * p.dim, count, old + j * kChunk);
      for (int j = 0; j < s; ++j) {
        const float post = p.post[row * s + j];
        MixStreams(
            old, s, kChunk, count, [&](int i) { return comb[i * s + j]; }, mixed);
        for (int64_t c = 0; c < count; ++c) {
          h[j * p.dim + c] = Round(post * y[c] + mixed[c], p.round);
        }
      }
    }
  }
}

void MeanStreams(const MeanStreamsParams& p, int64_t begin, int64_t end) {
  const float inverse = 1.0f / static_cast<float>(p.num_streams);
  float sum[kChunk];
  for (int64_t row = begin; row < end; ++row) {
    const float* h = p.h + row * p.num_streams * p.dim;
    float* y = p.y + row * p.y_stride;
    for (int64_t at = 0; at < p.dim; at += kChunk) {
      const int64_t count = std::min(kChunk, p.dim - at);
      MixStreams(
          h + at, p.num_streams, p.dim, count, [](int) { return 1.0f; }, sum);
      for (int64_t c = 0; c < count; ++c) y[at + c] = Round(sum[c] * inverse, p.round);
    }
  }
}

float NgramGateOf(float product, float norm, int64_t dim) {
  const float d = product * norm * InverseSqrt(static_cast<float>(dim));
  return PreciseSigmoid(std::copysign(std::sqrt(std::max(std::fabs(d), 1e-6f)), d));
}

void NgramGate(const NgramGateParams& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    if (p.is_image[row] != 0) continue;
    const float* kv = p.kv + row * (p.num_streams + 1) * p.dim;
    const float* value = kv + p.num_streams * p.dim;
    for (int j = 0; j < p.num_streams; ++j) {
      float* h = p.h + (row * p.num_streams + j) * p.dim;
      const float* key = kv + j * p.dim;
      const float product = Sum(p.dim, [&](int64_t i) {
        const float weight =
            Bf16ToFloat(p.q_weight[j * p.dim + i]) * Bf16ToFloat(p.k_weight[j * p.dim + i]);
        return h[i] * weight * key[i];
      });
      const float norm = InverseRms(h, p.dim, p.eps) * InverseRms(key, p.dim, p.eps);
      const float gate = NgramGateOf(product, norm, p.dim);
      for (int64_t i = 0; i < p.dim; ++i) h[i] = Round(h[i] + gate * value[i], p.round);
    }
  }
}

}  // namespace deepinfer::scalar
