// Attention with two FMAs where AVX-512 has one vdpbf16ps: a block of 64 keys is decoded to fp32
// once and serves all heads, as keys for the scores and as values for the weighted sum.
//
// Rows of channels are kept in lane order: of every 32 the 16 odd ones, then the 16 even ones. That
// is the order in which a dot product takes them, and to a weighted sum, whose lanes are channels,
// all orders are the same.
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/lanes.h"
#include "kernels/key_list.h"
#include "kernels/scalar/scalar.h"
#include "kernels/vector/fp8.h"
#include "kernels/vector/math.h"
#include "kernels/workspace.h"

namespace deepinfer::avx2 {
namespace {

using vector::kLanes;

constexpr int kBlock = 64;
constexpr int64_t kPairs = 32;  // channels that are put into lane order together
constexpr int kHeads = 3;       // heads that share what is loaded

thread_local Workspace workspace;

// What the heads of one row share and update, block by block.
struct RowState {
  float* queries;         // [heads, dim] in lane order
  float* keys;            // [64, dim] in lane order; empty slots are zeros
  float* weights;         // [heads, 64] scores, then weights
  float* top;             // [heads] largest score so far
  float* den;             // [heads] sum of weights so far
  float* carry;           // [heads] what the sums so far are multiplied by
  int32_t valid[kBlock];  // -1, or 0 for an empty slot
};

void StoreInLaneOrder(F32 first, F32 second, float* out) {
  F32 odd = F32::Zero();
  F32 even = F32::Zero();
  SplitPairs(first, second, odd, even);
  odd.Store(out, Whole{});
  even.Store(out + kLanes, Whole{});
}

void ToLaneOrder(const float* x, int64_t dim, float* out) {
  for (int64_t at = 0; at < dim; at += kPairs) {
    StoreInLaneOrder(F32::Load(x + at, Whole{}), F32::Load(x + at + kLanes, Whole{}), out + at);
  }
}

F32 E4M3At(const uint8_t* codes, F32 scale) {
  return vector::DecodeE4M3<Lanes>(I32::LoadBytes(codes, Whole{})) * scale;
}

void LoadWindowRow(const uint8_t* row, int64_t dim, float* out) {
  for (int64_t at = 0; at < dim; at += kPairs) {
    const F32 scale = F32::Set(vector::E8M0ToFloat(row[dim + at / kPairs]));
    StoreInLaneOrder(E4M3At(row + at, scale), E4M3At(row + at + kLanes, scale), out + at);
  }
}

// Scales are decoded sixteen at a time; a row has dim / 16 of them.
void LoadLatentRow(const uint8_t* row, int64_t dim, float* out) {
  for (int64_t first = 0; first < dim; first += kLanes * kLanes) {
    const int64_t left = (dim - first) / kLanes;
    const int64_t groups = left < kLanes ? left : kLanes;
    uint8_t codes[kLanes] = {};
    __builtin_memcpy(codes, row + dim / 2 + first / kLanes, static_cast<size_t>(groups));
    alignas(32) float scales[kLanes];
    vector::DecodeE4M3<Lanes>(I32::LoadBytes(codes, Whole{})).Store(scales, Whole{});
    for (int64_t g = 0; g < groups; g += 2) {
      const int64_t at = first + g * kLanes;
      const F32 a = F32::OfE2M1(I32::LoadNibbles(row + at / 2)) * F32::Set(scales[g]);
      const F32 b = F32::OfE2M1(I32::LoadNibbles(row + at / 2 + 8)) * F32::Set(scales[g + 1]);
      StoreInLaneOrder(a, b, out + at);
    }
  }
}

void LoadRow(RowFormat format, const std::byte* row, int64_t dim, float* out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(row);
  if (format == RowFormat::kFp8E8M0) return LoadWindowRow(bytes, dim, out);
  if (format == RowFormat::kFp4E4M3) return LoadLatentRow(bytes, dim, out);
  ToLaneOrder(reinterpret_cast<const float*>(row), dim, out);
}

bool LoadSlot(const AttentionParams& p, const AttentionRow& row, int64_t slot, float* key) {
  const KeySlot from = KeySlotOf(p, row, slot);
  if (from.row == nullptr) return false;
  LoadRow(from.format, from.row, p.dim, key);
  return true;
}

void LoadBlock(const AttentionParams& p, const AttentionRow& row, int64_t first, RowState& state) {
  for (int slot = 0; slot < kBlock; ++slot) {
    float* key = state.keys + slot * p.dim;
    state.valid[slot] = LoadSlot(p, row, first + slot, key) ? -1 : 0;
    if (state.valid[slot] == 0)
      __builtin_memset(key, 0, static_cast<size_t>(p.dim) * sizeof(float));
  }
}

// Scores of kCount heads from `head` on with all slots of a block.
template <int kCount>
void ScoreHeads(const AttentionParams& p, const RowState& state, int64_t head) {
  const float* q = state.queries + head * p.dim;
  for (int slot = 0; slot < kBlock; slot += 2) {
    const float* first = state.keys + slot * p.dim;
    const float* second = first + p.dim;
    F32 acc[kCount][2];
    for (int h = 0; h < kCount; ++h) acc[h][0] = acc[h][1] = F32::Zero();
    for (int64_t at = 0; at < p.dim; at += kLanes) {
      const F32 a = F32::Load(first + at, Whole{});
      const F32 b = F32::Load(second + at, Whole{});
      for (int h = 0; h < kCount; ++h) {
        const F32 x = F32::Load(q + h * p.dim + at, Whole{});
        acc[h][0] = Fma(x, a, acc[h][0]);
        acc[h][1] = Fma(x, b, acc[h][1]);
      }
    }
    for (int h = 0; h < kCount; ++h) {
      float* scores = state.weights + (head + h) * kBlock + slot;
      scores[0] = LaneTree(acc[h][0]) * p.scale;
      scores[1] = LaneTree(acc[h][1]) * p.scale;
    }
  }
}

// Turns the scores of a head into weights.
void SoftmaxBlock(const RowState& state, int64_t head) {
  float* scores = state.weights + head * kBlock;
  const F32 none = F32::Set(-__builtin_inff());
  F32 s[kBlock / kLanes];
  Mask valid[kBlock / kLanes];
  F32 largest = none;
  for (int i = 0; i < kBlock / kLanes; ++i) {
    valid[i] = I32::Load(state.valid + i * kLanes, Whole{}) < I32::Set(0);
    s[i] = Select(valid[i], F32::Load(scores + i * kLanes, Whole{}), none);
    largest = Max(s[i], largest);
  }
  const float block_max = MaxLane(largest);
  const float top = state.top[head];
  const float max = block_max > top ? block_max : top;
  const float carry = deepinfer::ExpF32(top - max);
  F64 sum = F64::Zero();
  for (int i = 0; i < kBlock / kLanes; ++i) {
    const F32 weight = Select(valid[i], vector::ExpF32<Lanes>(s[i] - F32::Set(max)), F32::Zero());
    sum = vector::AddTerms<Lanes>(sum, weight);
    RoundToBf16(weight).Store(scores + i * kLanes, Whole{});
  }
  state.den[head] = state.den[head] * carry + SumTree(sum);
  state.top[head] = max;
  state.carry[head] = carry;
}

// Of 32 channels from c on: acc = acc * carry, then the keys in pairs, the odd one first.
template <int kCount>
void AddValues(const AttentionParams& p, const RowState& state, int64_t head, int64_t c, float* o) {
  F32 acc[kCount][2];
  for (int h = 0; h < kCount; ++h) {
    const F32 carry = F32::Set(state.carry[head + h]);
    for (int i = 0; i < 2; ++i) {
      acc[h][i] = F32::Load(o + (head + h) * p.dim + c + i * kLanes, Whole{}) * carry;
    }
  }
  for (int pair = 0; pair < kBlock; pair += 2) {
    for (int slot = pair + 1; slot >= pair; --slot) {
      const float* values = state.keys + slot * p.dim + c;
      const F32 a = F32::Load(values, Whole{});
      const F32 b = F32::Load(values + kLanes, Whole{});
      for (int h = 0; h < kCount; ++h) {
        const F32 weight = F32::Set(state.weights[(head + h) * kBlock + slot]);
        acc[h][0] = Fma(weight, a, acc[h][0]);
        acc[h][1] = Fma(weight, b, acc[h][1]);
      }
    }
  }
  for (int h = 0; h < kCount; ++h) {
    for (int i = 0; i < 2; ++i) {
      acc[h][i].Store(o + (head + h) * p.dim + c + i * kLanes, Whole{});
    }
  }
}

void AddBlock(const AttentionParams& p, const RowState& state, float* o) {
  int64_t head = 0;
  for (; head + kHeads <= p.heads; head += kHeads) ScoreHeads<kHeads>(p, state, head);
  for (; head < p.heads; ++head) ScoreHeads<1>(p, state, head);
  for (int64_t h = 0; h < p.heads; ++h) SoftmaxBlock(state, h);
  // The 32 channels of all keys stay in the first-level cache for all heads.
  for (int64_t c = 0; c < p.dim; c += kPairs) {
    for (head = 0; head + kHeads <= p.heads; head += kHeads) {
      AddValues<kHeads>(p, state, head, c, o);
    }
    for (; head < p.heads; ++head) AddValues<1>(p, state, head, c, o);
  }
}

// o = r(acc / (den + exp(sink - top))), back in natural order.
void Finish(const AttentionParams& p, const RowState& state, float* o) {
  for (int64_t h = 0; h < p.heads; ++h) {
    const F32 den = F32::Set(state.den[h] + deepinfer::ExpF32(p.sink[h] - state.top[h]));
    for (int64_t c = h * p.dim; c < (h + 1) * p.dim; c += kPairs) {
      F32 first = F32::Zero();
      F32 second = F32::Zero();
      MergePairs(F32::Load(o + c, Whole{}), F32::Load(o + c + kLanes, Whole{}), first, second);
      RoundToBf16(first / den).Store(o + c, Whole{});
      RoundToBf16(second / den).Store(o + c + kLanes, Whole{});
    }
  }
}

void AttendRow(const AttentionParams& p, int64_t i, RowState& state) {
  const AttentionRow& row = p.rows[i];
  float* o = p.o + i * p.heads * p.dim;
  ToLaneOrder(p.q + i * p.heads * p.dim, p.heads * p.dim, state.queries);
  for (int64_t h = 0; h < p.heads; ++h) {
    state.top[h] = -1e30f;
    state.den[h] = 0;
  }
  __builtin_memset(o, 0, static_cast<size_t>(p.heads * p.dim) * sizeof(float));
  const int64_t slots = p.window_size + row.num_selected;
  for (int64_t first = 0; first < slots; first += kBlock) {
    LoadBlock(p, row, first, state);
    AddBlock(p, state, o);
  }
  Finish(p, state, o);
}

}  // namespace

void Attention(const AttentionParams& p, int64_t begin, int64_t end) {
  if (!p.round) return scalar::Attention(p, begin, end);  // fp32 rows are for checking
  const int64_t count = p.heads * p.dim + kBlock * p.dim + p.heads * (kBlock + 3);
  auto* memory = static_cast<float*>(workspace.Get(static_cast<size_t>(count) * sizeof(float)));
  RowState state;
  state.queries = memory;
  state.keys = state.queries + p.heads * p.dim;
  state.weights = state.keys + kBlock * p.dim;
  state.top = state.weights + p.heads * kBlock;
  state.den = state.top + p.heads;
  state.carry = state.den + p.heads;
  for (int64_t i = begin; i < end; ++i) AttendRow(p, i, state);
}

}  // namespace deepinfer::avx2
