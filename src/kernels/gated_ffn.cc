#include "kernels/gated_ffn.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/column_order.h"
#include "kernels/op_profile.h"
#include "kernels/ops.h"

namespace deepinfer {
namespace {

// How the outputs of a group's products are cut.
struct Cut {
  Cut(const ExecContext& context, size_t experts, int64_t outputs)
      : grain(OutputGrain(context, static_cast<int64_t>(experts), outputs)),
        tiles((outputs + grain - 1) / grain) {}

  int64_t grain;  // outputs of a tile
  int64_t tiles;  // of one product
};

// Experts whose rows lie one after another in the group's buffers.
struct Group {
  std::span<const FfnExpert> experts;
  int64_t* first_row;  // [experts]
  int64_t rows;        // of all
  float* gate;         // [rows, inner]
  float* up;           // [rows, inner]
  float* out;          // [rows, hidden]
};

// One product of an expert, restricted to the outputs of a tile.
void MultiplyTile(ExecContext& context, const MatmulParams& params, const Cut& cut, int64_t tile) {
  const int64_t begin = tile * cut.grain;
  context.kernels().matmul(params, begin, std::min(begin + cut.grain, params.w.n));
}

void GatesAndUps(ExecContext& context, const GatedFfnParams& p, const Group& group) {
  const int64_t inner = p.experts.front().w1.n;
  const Cut cut(context, group.experts.size(), inner);
  const auto count = static_cast<int64_t>(group.experts.size());
  context.ParallelFor(count * cut.tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto e = static_cast<size_t>(i / cut.tiles);
      const FfnExpert& expert = group.experts[e];
      MatmulParams product{.x = p.x,
                           .order = p.order,
                           .x_index = expert.index,
                           .m = expert.rows,
                           .w = expert.w1,
                           .y = group.gate + group.first_row[e] * inner,
                           .y_stride = inner,
                           .round = p.round};
      MultiplyTile(context, product, cut, i % cut.tiles);
      product.w = expert.w3;
      product.y = group.up + group.first_row[e] * inner;
      MultiplyTile(context, product, cut, i % cut.tiles);
    }
  });
}

// gate becomes the weighted activation; -> what w2 reads.
const void* Activate(ExecContext& context, const GatedFfnParams& p, const Group& group,
                     ColumnOrder order) {
  const int64_t inner = p.experts.front().w1.n;
  auto* a = context.scratch().Alloc<float>(group.rows * inner);
  for (size_t e = 0; e < group.experts.size(); ++e) {
    const int64_t at = group.first_row[e] * inner;
    Swiglu(context,
           {.gate = group.gate + at,
            .up = group.up + at,
            .row_weight = group.experts[e].weights,
            .dim = inner,
            .limit = p.limit,
            .round = p.round,
            .y = a + at},
           group.experts[e].rows);
  }
  if (order == ColumnOrder::kF32) return a;
  auto* packed = context.scratch().Alloc<uint16_t>(group.rows * PackedStride(order, inner));
  Pack(context,
       {.x = a, .x_stride = inner, .k = inner, .quantize = true, .order = order, .out = packed},
       group.rows);
  return packed;
}

void Downs(ExecContext& context, const GatedFfnParams& p, const Group& group, ColumnOrder order,
           const void* activated) {
  const int64_t inner = p.experts.front().w1.n;
  const int64_t hidden = p.experts.front().w2.n;
  const int64_t row_bytes = PackedStride(order, inner) * (order == ColumnOrder::kF32 ? 4 : 2);
  const Cut cut(context, group.experts.size(), hidden);
  const auto count = static_cast<int64_t>(group.experts.size());
  context.ParallelFor(count * cut.tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto e = static_cast<size_t>(i / cut.tiles);
      MultiplyTile(context,
                   {.x = static_cast<const std::byte*>(activated) + group.first_row[e] * row_bytes,
                    .order = order,
                    .x_index = nullptr,
                    .m = group.experts[e].rows,
                    .w = group.experts[e].w2,
                    .y = group.out + group.first_row[e] * hidden,
                    .y_stride = hidden,
                    .round = p.round},
                   cut, i % cut.tiles);
    }
  });
}

void CountProducts(OpProfile* profile, Op op, const Group& group) {
  if (profile == nullptr) return;
  OpProfile::Entry& entry = profile->of(op);
  for (const FfnExpert& expert : group.experts) {
    for (const WeightView& w : {expert.w1, expert.w3, expert.w2}) {
      entry.weight_bytes += WeightBytes(w);
      entry.macs += expert.rows * w.n * w.k;
    }
  }
}

void RunGroup(ExecContext& context, const GatedFfnParams& p, Group group) {
  ScratchArena& scratch = context.scratch();
  const ScratchArena::Scope scope(scratch);
  const WeightView& w2 = p.experts.front().w2;
  group.first_row = scratch.Alloc<int64_t>(static_cast<int64_t>(group.experts.size()));
  int64_t row = 0;
  for (size_t e = 0; e < group.experts.size(); ++e) {
    group.first_row[e] = row;
    row += group.experts[e].rows;
  }
  group.gate = scratch.Alloc<float>(group.rows * w2.k);
  group.up = scratch.Alloc<float>(group.rows * w2.k);
  group.out = scratch.Alloc<float>(group.rows * w2.n);

  const Op op = MatmulOp(w2.format);
  CountProducts(context.profile(), op, group);
  {
    const OpTimer timer(context.profile(), op);
    GatesAndUps(context, p, group);
  }
  const ColumnOrder order = p.round ? OrderOf(w2.format) : ColumnOrder::kF32;
  const void* activated = Activate(context, p, group, order);
  {
    const OpTimer timer(context.profile(), op);
    Downs(context, p, group, order, activated);
  }
  for (size_t e = 0; e < group.experts.size(); ++e) {
    AddRows(context,
            {.x = group.out + group.first_row[e] * w2.n,
             .index = group.experts[e].index,
             .dim = w2.n,
             .y = p.y},
            group.experts[e].rows);
  }
}

}  // namespace

void GatedFfn(ExecContext& context, const GatedFfnParams& params) {
  size_t begin = 0;
  while (begin < params.experts.size()) {
    size_t end = begin;
    int64_t rows = 0;
    do {
      const FfnExpert& expert = params.experts[end];
      CHECK(expert.w1.n == expert.w2.k && expert.w3.n == expert.w2.k);
      CHECK(expert.w1.k == expert.w2.n && expert.w3.k == expert.w2.n);
      rows += expert.rows;
      ++end;
    } while (end < params.experts.size() && rows + params.experts[end].rows <= kFfnGroupRows);
    RunGroup(context, params,
             {.experts = params.experts.subspan(begin, end - begin), .rows = rows});
    begin = end;
  }
}

}  // namespace deepinfer
