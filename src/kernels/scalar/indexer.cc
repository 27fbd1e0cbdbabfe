// Index scores and the selections made from them (model.md sections 7.3 and 7.4).
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"
#include "tensor/fp4.h"
#include "tensor/fp8.h"
#include "tensor/quant.h"

namespace deepinfer::scalar {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

// 2^(scale - 128): the e8m0 scale with half of the doubling of two codes taken back.
float HalvedScale(uint8_t scale) { return scale < 2 ? 0.0f : PowerOfTwo(scale - 128); }

// q . k over packed FP4 rows: exact inside a group, groups added in ascending order.
float DotFp4(const std::byte* q_row, const std::byte* k_row, int64_t dim) {
  const auto* q = reinterpret_cast<const uint8_t*>(q_row);
  const auto* k = reinterpret_cast<const uint8_t*>(k_row);
  float dot = 0;
  for (int64_t at = 0; at < dim; at += kFp4Group) {
    int32_t sum = 0;
    for (int64_t i = at; i < at + kFp4Group; ++i) {
      sum += kE2M1Doubled[NibbleOf(q, i)] * kE2M1Doubled[NibbleOf(k, i)];
    }
    const int64_t scale_at = dim / 2 + at / kFp4Group;
    dot += static_cast<float>(sum) * (HalvedScale(q[scale_at]) * HalvedScale(k[scale_at]));
  }
  return dot;
}

}  // namespace

void IndexScores(const IndexScoresParams& p, int64_t begin, int64_t end) {
  const bool round = p.format != RowFormat::kF32;
  const int64_t row_bytes = RowBytes(p.format, p.dim);
  for (int64_t entry = begin; entry < end; ++entry) {
    const std::byte* key = p.keys.Row(entry);
    float score = 0;
    for (int64_t head = 0; head < p.heads; ++head) {
      const std::byte* query = p.query + head * row_bytes;
      const float dot = round ? DotFp4(query, key, p.dim)
                              : DotF32(reinterpret_cast<const float*>(query),
                                       reinterpret_cast<const float*>(key), p.dim);
      score += Round(std::max(Round(dot, round), 0.0f) * p.weights[head], round);
    }
    p.scores[entry] = Round(score, round);
  }
}

void CandidateBlocks(const CandidateBlocksParams& p) {
  const int64_t count = (p.num_scores + p.block_size - 1) / p.block_size;
  const auto score_of = [&](int64_t block) {
    if (block == count - 1) return std::numeric_limits<float>::infinity();  // the newest entry's
    const float* first = p.scores + block * p.block_size;
    return *std::max_element(first, first + p.block_size);
  };
  float* block_scores = p.block_scores;
  for (int64_t block = 0; block < count; ++block) block_scores[block] = score_of(block);
  SelectTopK({.scores = block_scores,
              .num_scores = count,
              .top_k = p.top_blocks,
              .selected = p.blocks,
              .num_selected = p.num_blocks,
              .order = p.order,
              .margin = p.margin});
}

void SelectTopK(const SelectTopKParams& p) {
  const auto better = [&](int32_t a, int32_t b) {
    return p.scores[a] > p.scores[b] || (p.scores[a] == p.scores[b] && a < b);
  };
  int32_t* last = p.order;
  for (int64_t i = 0; i < p.num_scores; ++i) {
    if (p.scores[i] > kExcluded) *last++ = static_cast<int32_t>(i);
  }
  const int64_t usable = last - p.order;
  const int64_t kept = std::min<int64_t>(p.top_k, usable);
  if (kept < usable) std::nth_element(p.order, p.order + kept, last, better);
  if (p.margin != nullptr) {
    *p.margin = std::numeric_limits<float>::infinity();
    if (kept < usable) {
      const int32_t worst_kept = *std::max_element(p.order, p.order + kept, better);
      *p.margin = p.scores[worst_kept] - p.scores[p.order[kept]];
    }
  }
  std::copy(p.order, p.order + kept, p.selected);
  std::sort(p.selected, p.selected + kept);
  *p.num_selected = static_cast<int32_t>(kept);
}

}  // namespace deepinfer::scalar
