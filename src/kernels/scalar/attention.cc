// Attention over the canonical key list (model.md section 6, docs/formats/numerics.md section 5).
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/math.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"
#include "tensor/row_codec.h"

namespace deepinfer::scalar {
namespace {

constexpr int kBlock = 64;

// Keys (= values) of one block of the list; empty slots are zeros.
struct KeyBlock {
  std::vector<float> keys;  // [64, dim]
  bool valid[kBlock];
};

// Slot `slot` of the list: W window slots, then the selected entries.
bool LoadSlot(const AttentionParams& p, const AttentionRow& row, int64_t slot, float* key) {
  const std::span<float> out(key, static_cast<size_t>(p.dim));
  if (slot < p.window_size) {
    const int64_t pos = std::max<int64_t>(0, row.pos - p.window_size + 1) + slot;
    if (pos > row.pos || pos < row.window.floor) return false;
    DecodeRow(p.window_format, row.window.Row(pos), out);
    return true;
  }
  const int64_t i = slot - p.window_size;
  if (i >= row.num_selected) return false;
  DecodeRow(p.rows_format, row.rows.Row(row.selected[i]), out);
  return true;
}

void LoadBlock(const AttentionParams& p, const AttentionRow& row, int64_t first, KeyBlock& block) {
  for (int slot = 0; slot < kBlock; ++slot) {
    float* key = block.keys.data() + slot * p.dim;
    block.valid[slot] = LoadSlot(p, row, first + slot, key);
    if (!block.valid[slot]) std::fill_n(key, p.dim, 0.0f);
  }
}

// Running softmax of one head.
struct HeadState {
  float top = -1e30f;
  float den = 0;
};

// acc += P V over the block: in the pair order of the dot product (release), or one fp64 sum
// (fp32).
void AddValues(const float (&weights)[kBlock], const KeyBlock& block, int64_t dim, bool round,
               float* acc) {
  const float* v = block.keys.data();
  if (!round) {
    for (int64_t c = 0; c < dim; ++c) {
      acc[c] += Sum(kBlock, [&](int64_t j) {
        return static_cast<double>(weights[j]) * static_cast<double>(v[j * dim + c]);
      });
    }
    return;
  }
  for (int j = 0; j < kBlock; j += 2) {
    for (int64_t c = 0; c < dim; ++c) {
      const float odd = FmaBf16(weights[j + 1], v[(j + 1) * dim + c], acc[c]);
      acc[c] = FmaBf16(weights[j], v[j * dim + c], odd);
    }
  }
}

void AddBlock(const AttentionParams& p, const float* q, const KeyBlock& block, HeadState& head,
              float* acc) {
  float score[kBlock];
  float max = head.top;
  for (int slot = 0; slot < kBlock; ++slot) {
    if (!block.valid[slot]) continue;
    const float* key = block.keys.data() + slot * p.dim;
    score[slot] = (p.round ? DotOperands(q, key, p.dim) : DotF32(q, key, p.dim)) * p.scale;
    max = std::max(max, score[slot]);
  }
  const float carry = ExpF32(head.top - max);
  float weight[kBlock];
  for (int slot = 0; slot < kBlock; ++slot) {
    weight[slot] = block.valid[slot] ? ExpF32(score[slot] - max) : 0.0f;
  }
  head.den = head.den * carry + Sum(kBlock, [&](int64_t slot) { return weight[slot]; });
  for (float& w : weight) w = Round(w, p.round);
  for (int64_t c = 0; c < p.dim; ++c) acc[c] *= carry;
  AddValues(weight, block, p.dim, p.round, acc);
  head.top = max;
}

}  // namespace

void Attention(const AttentionParams& p, int64_t begin, int64_t end) {
  KeyBlock block{.keys = std::vector<float>(static_cast<size_t>(kBlock * p.dim)), .valid = {}};
  std::vector<HeadState> heads(static_cast<size_t>(p.heads));
  for (int64_t i = begin; i < end; ++i) {
    const AttentionRow& row = p.rows[i];
    float* o = p.o + i * p.heads * p.dim;
    std::fill_n(o, p.heads * p.dim, 0.0f);
    std::fill(heads.begin(), heads.end(), HeadState{});
    const int64_t slots = p.window_size + row.num_selected;
    for (int64_t first = 0; first < slots; first += kBlock) {
      LoadBlock(p, row, first, block);
      for (int64_t h = 0; h < p.heads; ++h) {
        AddBlock(p, p.q + (i * p.heads + h) * p.dim, block, heads[static_cast<size_t>(h)],
                 o + h * p.dim);
      }
    }
    for (int64_t h = 0; h < p.heads; ++h) {
      const HeadState& head = heads[static_cast<size_t>(h)];
      const float den = head.den + ExpF32(p.sink[h] - head.top);
      for (int64_t c = 0; c < p.dim; ++c) o[h * p.dim + c] = Round(o[h * p.dim + c] / den, p.round);
    }
  }
}

}  // namespace deepinfer::scalar
