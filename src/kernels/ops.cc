#include "kernels/ops.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "kernels/column_order.h"
#include "kernels/op_profile.h"

namespace deepinfer {
namespace {

// Rows of work that one thread takes at a time.
constexpr int64_t kRowGrain = 4;
// Outputs of a product that go together: a multiple of the FP8 scale block, so that a range begins
// with a new one, between 64 and 256.
constexpr int64_t kLeastOutputs = 64;
constexpr int64_t kMostOutputs = 256;
constexpr int64_t kPartsPerThread = 4;
// Rows of a product that are multiplied by all of its weights before the next ones: 512 rows of
// 5,120 are 5 MB, which every panel of weights finds in the third-level cache.  Reading the weights
// again for the next rows costs a hundredth of the time.
constexpr int64_t kRowBlock = 512;
// Index keys that are scored together: 70 KB at the released dimensions.
constexpr int64_t kEntryGrain = 1024;
constexpr int64_t kElementGrain = 1 << 14;
constexpr int kMaxStreams = 8;  // of hyper-connections

template <typename Params>
void OverRange(ExecContext& context, Op op, void (*kernel)(const Params&, int64_t, int64_t),
               const Params& params, int64_t count, int64_t grain) {
  CHECK_GE(count, 0);
  const OpTimer timer(context.profile(), op);
  context.ParallelFor(count, grain,
                      [&](int64_t begin, int64_t end) { kernel(params, begin, end); });
}

// Parts of equal size that the heads of a row are divided into, so that few rows keep all threads
// busy.  Every part unpacks the row's keys again, which costs as much as about four heads.
int64_t HeadParts(const ExecContext& context, int64_t heads, int64_t rows) {
  constexpr int64_t kLeastHeads = 16;
  int64_t parts = 1;
  while (rows * parts < context.num_threads() && heads % (2 * parts) == 0 &&
         heads / (2 * parts) >= kLeastHeads) {
    parts *= 2;
  }
  return parts;
}

void CountProduct(const MatmulParams& params, OpProfile::Entry& entry) {
  entry.weight_bytes += WeightBytes(params.w);
  entry.macs += params.m * params.w.n * params.w.k;
}

}  // namespace

Op MatmulOp(WeightFormat format) {
  switch (format) {
    case WeightFormat::kFp8:
      return Op::kMatmulFp8;
    case WeightFormat::kFp4:
      return Op::kMatmulFp4;
    case WeightFormat::kBf16:
      return Op::kMatmulBf16;
    case WeightFormat::kF32:
      break;
  }
  return Op::kMatmulF32;
}

int64_t OutputGrain(const ExecContext& context, int64_t products, int64_t n) {
  const int64_t threads = context.num_threads();
  if (threads == 1) return std::max<int64_t>(n, 1);
  const int64_t share = products * n / (kPartsPerThread * threads);
  if (share >= kLeastOutputs) return std::min(share / kLeastOutputs * kLeastOutputs, kMostOutputs);
  // A narrow product: one part for each thread, however small.
  return std::clamp<int64_t>((products * n / threads + 3) / 4 * 4, 4, kLeastOutputs);
}

int64_t WeightBytes(const WeightView& w) {
  const int64_t values = w.n * w.k;
  switch (w.format) {
    case WeightFormat::kFp8:
      return values + (w.n + 31) / 32 * (w.k / 32);
    case WeightFormat::kFp4:
      return values / 2 + values / 32;
    case WeightFormat::kBf16:
      return values * 2;
    case WeightFormat::kF32:
      break;
  }
  return values * 4;
}

void Pack(ExecContext& context, const PackParams& params, int64_t rows) {
  CHECK(params.order != ColumnOrder::kF32);
  CHECK(!params.quantize || params.k % 32 == 0);
  CHECK_GE(params.x_stride, params.k);
  OverRange(context, Op::kPack, context.kernels().pack, params, rows, kRowGrain);
}

void Matmul(ExecContext& context, const MatmulParams& params) {
  CHECK(params.order == ColumnOrder::kF32 || params.order == OrderOf(params.w.format));
  CHECK(params.w.data != nullptr);
  if (params.w.format == WeightFormat::kFp8 || params.w.format == WeightFormat::kFp4) {
    CHECK(params.w.scales != nullptr);
    CHECK_EQ(params.w.k % 32, 0);
  }
  CHECK_GE(params.m, 0);
  CHECK_GE(params.y_stride, params.w.n);
  const Op op = MatmulOp(params.w.format);
  if (context.profile() != nullptr) CountProduct(params, context.profile()->of(op));
  const int64_t grain = OutputGrain(context, 1, params.w.n);
  for (int64_t first = 0; first < params.m; first += kRowBlock) {
    const MatmulParams rows = RowsOf(params, first, std::min(kRowBlock, params.m - first));
    OverRange(context, op, context.kernels().matmul, rows, params.w.n, grain);
  }
}

void Embed(ExecContext& context, const EmbedParams& params, int64_t rows) {
  OverRange(context, Op::kEmbed, context.kernels().embed, params, rows, kRowGrain);
}

void RmsNorm(ExecContext& context, const RmsNormParams& params, int64_t rows) {
  CHECK_GT(params.dim, 0);
  CHECK_GE(params.x_stride, params.dim);
  OverRange(context, Op::kRmsNorm, context.kernels().rms_norm, params, rows, kRowGrain);
}

void HcMixes(ExecContext& context, const HcMixesParams& params, int64_t rows) {
  CHECK_LE(params.num_streams, kMaxStreams);
  CHECK_GE(params.sinkhorn_iters, 1);
  OverRange(context, Op::kHcMixes, context.kernels().hc_mixes, params, rows, kRowGrain);
}

void HcPre(ExecContext& context, const HcPreParams& params, int64_t rows) {
  CHECK_LE(params.num_streams, kMaxStreams);
  OverRange(context, Op::kHcPre, context.kernels().hc_pre, params, rows, kRowGrain);
}

void HcPost(ExecContext& context, const HcPostParams& params, int64_t rows) {
  CHECK_LE(params.num_streams, kMaxStreams);
  OverRange(context, Op::kHcPost, context.kernels().hc_post, params, rows, kRowGrain);
}

void MeanStreams(ExecContext& context, const MeanStreamsParams& params, int64_t rows) {
  CHECK_LE(params.num_streams, kMaxStreams);
  CHECK_GE(params.y_stride, params.dim);
  OverRange(context, Op::kMeanStreams, context.kernels().mean_streams, params, rows, kRowGrain);
}

void Rope(ExecContext& context, const RopeParams& params, int64_t rows) {
  CHECK_LE(params.rope_dim, params.dim);
  CHECK_EQ(params.rope_dim % 2, 0);
  OverRange(context, Op::kRope, context.kernels().rope, params, rows, kRowGrain);
}

void StoreRows(ExecContext& context, const StoreRowsParams& params, int64_t rows) {
  CHECK(params.format == RowFormat::kF32 || params.dim % 32 == 0);
  CHECK_GE(params.x_stride, params.dim);
  OverRange(context, Op::kStoreRows, context.kernels().store_rows, params, rows, kRowGrain);
}

void PoolGroups(ExecContext& context, const PoolGroupsParams& params, int64_t entries) {
  CHECK_GE(params.ratio, 1);
  CHECK_LE(params.ratio, 128);
  OverRange(context, Op::kPoolGroups, context.kernels().pool_groups, params, entries, kRowGrain);
}

void Attend(ExecContext& context, const AttentionParams& params, int64_t rows) {
  CHECK_EQ(params.dim % 32, 0);
  CHECK_GT(params.window_size, 0);
  const OpTimer timer(context.profile(), Op::kAttention);
  const int64_t parts = HeadParts(context, params.heads, rows);
  const int64_t heads = params.heads / parts;
  context.ParallelFor(rows * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / parts;
      const int64_t first = (row * params.heads + i % parts * heads) * params.dim;
      AttentionParams part = params;
      part.q += first;
      part.o += first;
      part.rows += row;
      part.sink += i % parts * heads;
      part.heads = heads;
      context.kernels().attention(part, 0, 1);
    }
  });
}

void Route(ExecContext& context, const RouteParams& params, int64_t rows) {
  CHECK_GE(params.top_k, 1);
  CHECK_LE(params.top_k, params.num_experts);
  OverRange(context, Op::kRoute, context.kernels().route, params, rows, kRowGrain);
}

void Swiglu(ExecContext& context, const SwigluParams& params, int64_t rows) {
  OverRange(context, Op::kSwiglu, context.kernels().swiglu, params, rows, kRowGrain);
}

void AddRows(ExecContext& context, const AddRowsParams& params, int64_t rows) {
  OverRange(context, Op::kAddRows, context.kernels().add_rows, params, rows, kRowGrain);
}

void Scale(ExecContext& context, const ScaleParams& params, int64_t count) {
  OverRange(context, Op::kScale, context.kernels().scale, params, count, kElementGrain);
}

void DecodeFp8Rows(ExecContext& context, const DecodeFp8RowsParams& params, int64_t rows) {
  CHECK_EQ(params.dim % 32, 0);
  OverRange(context, Op::kDecodeRows, context.kernels().decode_fp8_rows, params, rows, kRowGrain);
}

void NgramGate(ExecContext& context, const NgramGateParams& params, int64_t rows) {
  OverRange(context, Op::kNgramGate, context.kernels().ngram_gate, params, rows, kRowGrain);
}

namespace {

// Work memory of one row of IndexSelect.
struct SelectScratch {
  float* scores;        // [most visible entries]
  int32_t* order;       // the same
  float* block_scores;  // [most blocks]
};

// Runs body(begin, end) over [0, count): on this thread, or cut among all.
void Over(ExecContext& context, bool split, int64_t count, int64_t grain,
          FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (split) {
    context.ParallelFor(count, grain, body);
  } else {
    body(0, count);
  }
}

// Scores of the entries that compete for one row; -inf for the others.
void ScoreRow(ExecContext& context, const IndexSelectParams& p, int64_t row, bool split,
              float* scores) {
  const int64_t visible = p.num_visible[row];
  const IndexScoresParams params{.query = p.queries + row * p.heads * RowBytes(p.format, p.dim),
                                 .weights = p.weights + row * p.heads,
                                 .heads = p.heads,
                                 .dim = p.dim,
                                 .format = p.format,
                                 .keys = p.keys[row],
                                 .scores = scores};
  if (p.candidates != CandidateUse::kUse) {
    Over(context, split, visible, kEntryGrain,
         [&](int64_t begin, int64_t end) { context.kernels().index_scores(params, begin, end); });
    return;
  }
  std::fill_n(scores, visible, -std::numeric_limits<float>::infinity());
  const int64_t grain = std::max<int64_t>(1, kEntryGrain / p.block_size);
  Over(context, split, p.num_candidate_blocks[row], grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = int64_t{p.candidate_blocks[row * p.top_blocks + i]} * p.block_size;
      context.kernels().index_scores(params, first, std::min(first + p.block_size, visible));
    }
  });
}

void SelectRow(ExecContext& context, const IndexSelectParams& p, int64_t row, bool split,
               const SelectScratch& scratch) {
  const int64_t visible = p.num_visible[row];
  if (visible == 0) {
    p.num_selected[row] = 0;
    if (p.margins != nullptr) p.margins[row] = std::numeric_limits<float>::infinity();
    if (p.candidates != CandidateUse::kMake) return;
    p.num_candidate_blocks[row] = 0;
    if (p.candidate_margins != nullptr) {
      p.candidate_margins[row] = std::numeric_limits<float>::infinity();
    }
    return;
  }
  ScoreRow(context, p, row, split, scratch.scores);
  context.kernels().select_top_k({.scores = scratch.scores,
                                  .num_scores = visible,
                                  .top_k = p.top_k,
                                  .selected = p.selected + row * p.top_k,
                                  .num_selected = p.num_selected + row,
                                  .order = scratch.order,
                                  .margin = p.margins != nullptr ? p.margins + row : nullptr});
  if (p.candidates != CandidateUse::kMake) return;
  context.kernels().candidate_blocks(
      {.scores = scratch.scores,
       .num_scores = visible,
       .block_size = p.block_size,
       .top_blocks = p.top_blocks,
       .blocks = p.candidate_blocks + row * p.top_blocks,
       .num_blocks = p.num_candidate_blocks + row,
       .block_scores = scratch.block_scores,
       .order = scratch.order,
       .margin = p.candidate_margins != nullptr ? p.candidate_margins + row : nullptr});
}

}  // namespace

void IndexSelect(ExecContext& context, const IndexSelectParams& params, int64_t rows) {
  CHECK(params.format == RowFormat::kF32 ||
        (params.format == RowFormat::kFp4E8M0 && params.dim % 32 == 0));
  CHECK_GE(params.top_k, 1);
  CHECK(params.candidates == CandidateUse::kNone || params.candidate_blocks != nullptr);
  CHECK(params.candidates == CandidateUse::kNone || params.block_size >= 1);
  int64_t longest = 1;
  for (int64_t row = 0; row < rows; ++row) longest = std::max(longest, params.num_visible[row]);
  // Selections that a stopped step left incomplete must not be followed.
  if (context.StopRequested()) return;
  const OpTimer timer(context.profile(), Op::kIndexSelect);
  const ScratchArena::Scope scope(context.scratch());
  // Few rows: all threads score the entries of one row, then of the next.
  const bool split = rows < context.num_threads();
  const int64_t slots = split ? 1 : context.num_threads();
  auto* scores = context.scratch().Alloc<float>(slots * longest);
  auto* order = context.scratch().Alloc<int32_t>(slots * longest);
  auto* block_scores = context.scratch().Alloc<float>(slots * longest);
  const auto select = [&](int64_t begin, int64_t end, int slot) {
    const SelectScratch scratch{.scores = scores + slot * longest,
                                .order = order + slot * longest,
                                .block_scores = block_scores + slot * longest};
    for (int64_t row = begin; row < end; ++row) SelectRow(context, params, row, split, scratch);
  };
  if (split) {
    select(0, rows, 0);
  } else {
    context.ParallelForSlots(rows, 1, select);
  }
}

ExpertPlan PlanExperts(ExecContext& context, const int32_t* experts, const float* weights,
                       const ExpertPlanShape& shape) {
  ScratchArena& scratch = context.scratch();
  auto* chosen = scratch.Alloc<int32_t>(shape.num_experts);
  auto* offsets = scratch.Alloc<int32_t>(shape.num_experts + 1);
  auto* rows = scratch.Alloc<int32_t>(shape.rows * shape.top_k);
  auto* row_weights = scratch.Alloc<float>(shape.rows * shape.top_k);
  auto* count = scratch.Alloc<int32_t>(shape.num_experts);
  std::fill_n(count, shape.num_experts, 0);
  for (int64_t i = 0; i < shape.rows * shape.top_k; ++i) ++count[experts[i]];

  int32_t num_chosen = 0;
  int32_t at = 0;
  for (int64_t e = 0; e < shape.num_experts; ++e) {
    if (count[e] == 0) continue;
    chosen[num_chosen] = static_cast<int32_t>(e);
    offsets[num_chosen++] = at;
    const int32_t begin = at;
    at += count[e];
    count[e] = begin;  // from here on: where the expert's next row goes
  }
  offsets[num_chosen] = at;
  for (int64_t i = 0; i < shape.rows * shape.top_k; ++i) {
    const int32_t slot = count[experts[i]]++;
    rows[slot] = static_cast<int32_t>(i / shape.top_k);
    row_weights[slot] = weights[i];
  }
  return {.num_experts = num_chosen,
          .experts = chosen,
          .offsets = offsets,
          .rows = rows,
          .weights = row_weights};
}

}  // namespace deepinfer
