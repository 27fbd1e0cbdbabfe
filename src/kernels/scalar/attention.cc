// Attention over the canonical key list (model.md section 6, docs/formats/numerics.md section 5).
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/key_list.h"
#include "kernels/math.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"
#include "kernels/workspace.h"
#include "tensor/row_codec.h"

namespace deepinfer::scalar {
namespace {

constexpr int kBlock = 64;

// Keys (= values) of one block of the list; empty slots are zeros.
struct KeyBlock {
  float* keys;      // [64, dim]
  float* operands;  // [64, dim] the same in lane order; release numerics only
  bool valid[kBlock];
  ExponentRange range[kBlock];
  ExponentRange block_range;  // of all slots
};

// A row of values as operand of DotOperands.
OperandRow ToOperands(const float* values, int64_t dim, float* out) {
  for (int64_t at = 0; at < dim; ++at) out[LaneSlot(at)] = values[at];
  return {.values = out, .range = RangeOf(values, dim)};
}

// Slot `slot` of the list; false for an empty one.
bool LoadSlot(const AttentionParams& p, const AttentionRow& row, int64_t slot, float* key) {
  const KeySlot from = KeySlotOf(p, row, slot);
  if (from.row == nullptr) return false;
  DecodeRow(from.format, from.row, {key, static_cast<size_t>(p.dim)});
  return true;
}

void LoadBlock(const AttentionParams& p, const AttentionRow& row, int64_t first, KeyBlock& block) {
  block.block_range = {};
  for (int slot = 0; slot < kBlock; ++slot) {
    float* key = block.keys + slot * p.dim;
    block.valid[slot] = LoadSlot(p, row, first + slot, key);
    if (!block.valid[slot]) std::fill_n(key, p.dim, 0.0f);
    if (!p.round) continue;
    block.range[slot] = ToOperands(key, p.dim, block.operands + slot * p.dim).range;
    block.block_range.Join(block.range[slot]);
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
  const float* v = block.keys;
  if (!round) {
    for (int64_t c = 0; c < dim; ++c) {
      acc[c] += Sum(kBlock, [&](int64_t j) {
        return static_cast<double>(weights[j]) * static_cast<double>(v[j * dim + c]);
      });
    }
    return;
  }
  const bool exact = ProductsAreExact(RangeOf(weights, kBlock), block.block_range);
  for (int j = 0; j < kBlock; j += 2) {
    const float* even = v + j * dim;
    const float* odd = even + dim;
    const float w0 = weights[j];
    const float w1 = weights[j + 1];
    if (exact) {
      for (int64_t c = 0; c < dim; ++c) acc[c] = w0 * even[c] + (w1 * odd[c] + acc[c]);
    } else {
      for (int64_t c = 0; c < dim; ++c) acc[c] = FmaBf16(w0, even[c], FmaBf16(w1, odd[c], acc[c]));
    }
  }
}

// One head's query: as given, and as operand (release).
struct Query {
  const float* values;  // [dim]
  OperandRow operands;
};

void AddBlock(const AttentionParams& p, const Query& q, const KeyBlock& block, HeadState& head,
              float* acc) {
  float score[kBlock];
  float max = head.top;
  for (int slot = 0; slot < kBlock; ++slot) {
    if (!block.valid[slot]) continue;
    const int64_t at = slot * p.dim;
    const float dot = p.round
                          ? DotOperands(q.operands, {block.operands + at, block.range[slot]}, p.dim)
                          : DotF32(q.values, block.keys + at, p.dim);
    score[slot] = dot * p.scale;
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

// Memory that the rows use one after the other.
struct RowMemory {
  KeyBlock& block;
  HeadState* heads;  // [heads]
  float* operands;   // [heads, dim]
};

void AttendRow(const AttentionParams& p, int64_t i, const RowMemory& memory) {
  const AttentionRow& row = p.rows[i];
  const float* q = p.q + i * p.heads * p.dim;
  float* o = p.o + i * p.heads * p.dim;
  std::fill_n(o, p.heads * p.dim, 0.0f);
  std::fill_n(memory.heads, p.heads, HeadState{});
  // Whole operand vectors lie one after the other, so that all heads go in one pass.
  ToOperands(q, p.heads * p.dim, memory.operands);
  const int64_t slots = p.window_size + row.num_selected;
  for (int64_t first = 0; first < slots; first += kBlock) {
    LoadBlock(p, row, first, memory.block);
    for (int64_t h = 0; h < p.heads; ++h) {
      const int64_t at = h * p.dim;
      const Query query{q + at, {memory.operands + at, RangeOf(q + at, p.dim)}};
      AddBlock(p, query, memory.block, memory.heads[h], o + at);
    }
  }
  for (int64_t h = 0; h < p.heads; ++h) {
    const HeadState& head = memory.heads[h];
    const float den = head.den + ExpF32(p.sink[h] - head.top);
    for (int64_t c = 0; c < p.dim; ++c) o[h * p.dim + c] = Round(o[h * p.dim + c] / den, p.round);
  }
}

}  // namespace

void Attention(const AttentionParams& p, int64_t begin, int64_t end) {
  static thread_local Workspace workspace;
  const int64_t block_size = kBlock * p.dim;
  auto* memory = workspace.Array<float>(2 * block_size + p.heads * p.dim + 2 * p.heads);
  KeyBlock block{.keys = memory, .operands = memory + block_size};
  float* operands = memory + 2 * block_size;  // [heads, dim] queries in lane order
  static_assert(sizeof(HeadState) == 2 * sizeof(float));
  auto* heads = reinterpret_cast<HeadState*>(operands + p.heads * p.dim);
  for (int64_t i = begin; i < end; ++i) AttendRow(p, i, {block, heads, operands});
}

}  // namespace deepinfer::scalar
