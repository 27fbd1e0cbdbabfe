// Index scores and the selections made from them (model.md sections 7.3 and 7.4).
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"
#include "kernels/workspace.h"
#include "tensor/fp4.h"
#include "tensor/fp8.h"
#include "tensor/quant.h"

namespace deepinfer::scalar {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

// 2^(scale - 128): the e8m0 scale with half of the doubling of two codes taken back.
float HalvedScale(uint8_t scale) { return scale < 2 ? 0.0f : PowerOfTwo(scale - 128); }

// An FP4 row taken apart: doubled codes and half scales.
struct Fp4Row {
  float* scales;   // [dim/32]
  int16_t* codes;  // [dim]

  static constexpr int64_t Bytes(int64_t dim) { return dim / kFp4Group * 4 + dim * 2; }

  Fp4Row(std::byte* memory, int64_t dim)
      : scales(reinterpret_cast<float*>(memory)),
        codes(reinterpret_cast<int16_t*>(scales + dim / kFp4Group)) {}

  void Load(const std::byte* row, int64_t dim) const {
    const auto* bytes = reinterpret_cast<const uint8_t*>(row);
    for (int64_t i = 0; i < dim; i += 2) {
      codes[i] = kE2M1Doubled[bytes[i / 2] & 15];
      codes[i + 1] = kE2M1Doubled[bytes[i / 2] >> 4];
    }
    for (int64_t g = 0; g < dim / kFp4Group; ++g) scales[g] = HalvedScale(bytes[dim / 2 + g]);
  }
};

// q . k: exact inside a group, groups added in ascending order.
float DotFp4(const Fp4Row& q, const Fp4Row& k, int64_t dim) {
  float dot = 0;
  for (int64_t g = 0; g < dim / kFp4Group; ++g) {
    const int16_t* a = q.codes + g * kFp4Group;
    const int16_t* b = k.codes + g * kFp4Group;
    int32_t sum = 0;
    for (int i = 0; i < kFp4Group; ++i) sum += a[i] * b[i];
    dot += static_cast<float>(sum) * (q.scales[g] * k.scales[g]);
  }
  return dot;
}

void IndexScoresFp4(const IndexScoresParams& p, int64_t begin, int64_t end) {
  static thread_local Workspace workspace;
  const int64_t bytes = Fp4Row::Bytes(p.dim);
  auto* memory = workspace.Array<std::byte>((p.heads + 1) * bytes);
  for (int64_t head = 0; head < p.heads; ++head) {
    Fp4Row(memory + head * bytes, p.dim).Load(p.query + head * RowBytes(p.format, p.dim), p.dim);
  }
  const Fp4Row key(memory + p.heads * bytes, p.dim);
  for (int64_t entry = begin; entry < end; ++entry) {
    key.Load(p.keys.Row(entry), p.dim);
    float score = 0;
    for (int64_t head = 0; head < p.heads; ++head) {
      const Fp4Row query(memory + head * bytes, p.dim);
      const float dot = RoundToBf16(DotFp4(query, key, p.dim));
      score += RoundToBf16(std::max(dot, 0.0f) * p.weights[head]);
    }
    p.scores[entry] = RoundToBf16(score);
  }
}

}  // namespace

void IndexScores(const IndexScoresParams& p, int64_t begin, int64_t end) {
  if (p.format == RowFormat::kFp4E8M0) {
    IndexScoresFp4(p, begin, end);
    return;
  }
  DCHECK(p.format == RowFormat::kF32);
  for (int64_t entry = begin; entry < end; ++entry) {
    const auto* key = reinterpret_cast<const float*>(p.keys.Row(entry));
    float score = 0;
    for (int64_t head = 0; head < p.heads; ++head) {
      const auto* query = reinterpret_cast<const float*>(p.query) + head * p.dim;
      score += std::max(DotF32(query, key, p.dim), 0.0f) * p.weights[head];
    }
    p.scores[entry] = score;
  }
}

void CandidateBlocks(const CandidateBlocksParams& p) {
  const int64_t count = (p.num_scores + p.block_size - 1) / p.block_size;
  const auto score_of = [&](int64_t block) {
    if (block == count - 1) return std::numeric_limits<float>::infinity();  // the newest entry's
    const float* first = p.scores + block * p.block_size;
    return *std::max_element(first, first + p.block_size) + 0.0f;  // a zero has no sign
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
