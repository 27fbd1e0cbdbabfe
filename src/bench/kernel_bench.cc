#include "bench/kernel_bench.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/check.h"
#include "bench/bench_data.h"
#include "bench/measure.h"
#include "kernels/column_order.h"
#include "kernels/gated_ffn.h"
#include "kernels/ops.h"
#include "tensor/row_codec.h"

namespace deepinfer {
namespace {

// The released dimensions (model.md section 2.2).
constexpr int64_t kHidden = 5120;
constexpr int64_t kInner = 2304;
constexpr int64_t kVocab = 129280;
constexpr int64_t kHeads = 64;
constexpr int64_t kHeadDim = 512;
constexpr int64_t kQLora = 1280;
constexpr int64_t kGroups = 8;
constexpr int64_t kOLora = 1024;
constexpr int kStreams = 4;
constexpr int64_t kMixes = kStreams * (2 + kStreams);
constexpr int kWindow = 128;
constexpr int kTopK = 512;
constexpr int64_t kIndexHeads = 32;
constexpr int64_t kIndexDim = 128;
constexpr int64_t kExperts = 64;  // that rows are routed to, evenly
constexpr int64_t kExpertsPerToken = 6;
constexpr int64_t kBlockEntries = 128;
constexpr int64_t kMostHeadRows = 64;  // logits of more are never asked for together

constexpr size_t kPoolBytes = size_t{1400} << 20;  // 64 experts, or one head
constexpr int64_t kDefaultRows[] = {1, 2, 6, 16, 64, 128, 512, 2048};

// What a call must do at least.
struct Work {
  double macs = 0;
  double bytes = 0;
  bool integer = false;  // the products are of bytes
};

class KernelBench {
 public:
  KernelBench(ExecContext& context, const Roofline& roofline, const KernelBenchOptions& options,
              const std::function<void(const BenchResult&)>& on_result)
      : context_(context),
        roofline_(roofline),
        options_(options),
        on_result_(on_result),
        rows_(options.rows.empty()
                  ? std::vector<int64_t>(std::begin(kDefaultRows), std::end(kDefaultRows))
                  : options.rows),
        weights_(kPoolBytes) {}

  std::vector<BenchResult> Run() {
    const auto fp8 = WeightFormat::kFp8;
    ForRows("linear_wq_a",
            [&](int64_t rows) { Linear("linear_wq_a", fp8, kQLora, kHidden, rows); });
    ForRows("linear_wq_b",
            [&](int64_t rows) { Linear("linear_wq_b", fp8, kHeads * kHeadDim, kQLora, rows); });
    ForRows("linear_wo_b",
            [&](int64_t rows) { Linear("linear_wo_b", fp8, kHidden, kGroups * kOLora, rows); });
    ForRows("linear_engram",
            [&](int64_t rows) { Linear("linear_engram", fp8, 5 * kHidden, 6144, rows); });
    ForRows("grouped_wo_a", [&](int64_t rows) { GroupedProjection(rows); });
    ForRows("ffn_mxfp4", [&](int64_t rows) { RoutedFfn(rows); });
    ForRows("ffn_shared", [&](int64_t rows) { SharedFfn(rows); });
    ForRows("gate", [&](int64_t rows) { Linear("gate", WeightFormat::kBf16, 384, kHidden, rows); });
    ForRows("mhc", [&](int64_t rows) { HyperConnection(rows); });
    ForRows("attention", [&](int64_t rows) { Attention(rows); });
    for (const auto& [name, entries] :
         {std::pair{"index_1k", int64_t{1} << 10}, std::pair{"index_16k", int64_t{1} << 14},
          std::pair{"index_128k", int64_t{1} << 17}, std::pair{"index_1m", int64_t{1} << 20}}) {
      if (Wanted(name)) IndexTopK(name, entries);
    }
    ForRows("head", [&](int64_t rows) {
      if (rows <= kMostHeadRows) Linear("head", WeightFormat::kBf16, kVocab, kHidden, rows);
    });
    return std::move(results_);
  }

 private:
  bool Wanted(std::string_view name) const {
    return options_.filter.empty() || name.find(options_.filter) != std::string_view::npos;
  }

  template <typename Body>
  void ForRows(std::string_view name, const Body& body) {
    if (!Wanted(name)) return;
    dram_ = MeasureDram(context_);
    for (const int64_t rows : rows_) body(rows);
  }

  void Report(std::string name, int64_t rows, const Work& work, FunctionRef<void()> body) {
    const Timing timing = Measure(body, {.seconds = options_.seconds, .least = 5});
    const double by_memory = work.bytes / (dram_ * 1e9);
    const double by_units =
        work.macs / ((work.integer ? roofline_.int8() : roofline_.bf16()) * 1e9);
    BenchResult result{.name = std::move(name),
                       .rows = rows,
                       .ms = timing.median * 1e3,
                       .gmacs = work.macs / timing.median / 1e9,
                       .gbytes = work.bytes / timing.median / 1e9,
                       .limit = by_memory > by_units ? "dram"
                                : work.integer       ? "int8"
                                                     : "bf16",
                       .percent_of_limit = 100 * std::max(by_memory, by_units) / timing.median};
    if (on_result_) on_result_(result);
    results_.push_back(std::move(result));
  }

  // Rows as a weight of this format reads them; as in a step, in scratch memory, which is aligned.
  const uint16_t* Packed(WeightFormat format, int64_t k, int64_t rows) {
    const ColumnOrder order = OrderOf(format);
    const std::vector<float> x = BenchActivations(rows * k);
    auto* packed = context_.scratch().Alloc<uint16_t>(rows * PackedStride(order, k));
    Pack(context_,
         {.x = x.data(),
          .x_stride = k,
          .k = k,
          .quantize = format != WeightFormat::kBf16,
          .order = order,
          .out = packed},
         rows);
    return packed;
  }

  void Linear(std::string name, WeightFormat format, int64_t n, int64_t k, int64_t rows) {
    const ScratchArena::Scope scope(context_.scratch());
    const uint16_t* x = Packed(format, k, rows);
    std::vector<float> y(static_cast<size_t>(rows * n));
    const Work work{.macs = static_cast<double>(rows * n * k),
                    .bytes = static_cast<double>(WeightBytes(weights_.Next(format, n, k)))};
    Report(std::move(name), rows, work, [&] {
      Matmul(context_, {.x = x,
                        .order = OrderOf(format),
                        .x_index = nullptr,
                        .m = rows,
                        .w = weights_.Next(format, n, k),
                        .y = y.data(),
                        .y_stride = n,
                        .round = true});
    });
  }

  void GroupedProjection(int64_t rows) {
    const int64_t k = kHeads * kHeadDim / kGroups;
    const ScratchArena::Scope scope(context_.scratch());
    const uint16_t* x = Packed(WeightFormat::kFp8, k, rows * kGroups);
    std::vector<float> z(static_cast<size_t>(rows * kGroups * kOLora));
    std::vector<int32_t> index(static_cast<size_t>(rows * kGroups));
    for (int64_t g = 0; g < kGroups; ++g) {
      for (int64_t i = 0; i < rows; ++i) {
        index[static_cast<size_t>(g * rows + i)] = static_cast<int32_t>(i * kGroups + g);
      }
    }
    const Work work{.macs = static_cast<double>(rows * kGroups * kOLora * k),
                    .bytes = static_cast<double>(
                        kGroups * WeightBytes(weights_.Next(WeightFormat::kFp8, kOLora, k)))};
    Report("grouped_wo_a", rows, work, [&] {
      for (int64_t g = 0; g < kGroups; ++g) {
        Matmul(context_, {.x = x,
                          .order = ColumnOrder::kFp8,
                          .x_index = index.data() + g * rows,
                          .m = rows,
                          .w = weights_.Next(WeightFormat::kFp8, kOLora, k),
                          .y = z.data() + g * kOLora,
                          .y_stride = kGroups * kOLora,
                          .round = true});
      }
    });
  }

  FfnExpert NextExpert(WeightFormat format) {
    return {.w1 = weights_.Next(format, kInner, kHidden),
            .w3 = weights_.Next(format, kInner, kHidden),
            .w2 = weights_.Next(format, kHidden, kInner),
            .index = nullptr,
            .weights = nullptr,
            .rows = 0};
  }

  static double ExpertBytes(const FfnExpert& expert) {
    return static_cast<double>(WeightBytes(expert.w1) + WeightBytes(expert.w3) +
                               WeightBytes(expert.w2));
  }

  // Row i goes to experts 6i .. 6i+5, modulo the number of experts.
  void RoutedFfn(int64_t rows) {
    const ScratchArena::Scope scope(context_.scratch());
    const uint16_t* x = Packed(WeightFormat::kFp4, kHidden, rows);
    std::vector<float> y(static_cast<size_t>(rows * kHidden));
    std::array<std::vector<int32_t>, kExperts> seen;
    for (int64_t i = 0; i < rows * kExpertsPerToken; ++i) {
      seen[static_cast<size_t>(i % kExperts)].push_back(static_cast<int32_t>(i / kExpertsPerToken));
    }
    const std::vector<float> ones(static_cast<size_t>(rows), 1.0f);
    Work work{.macs = static_cast<double>(rows * kExpertsPerToken * 3 * kInner * kHidden)};
    const double expert_bytes = ExpertBytes(NextExpert(WeightFormat::kFp4));
    for (const std::vector<int32_t>& index : seen) work.bytes += index.empty() ? 0 : expert_bytes;
    std::vector<FfnExpert> experts;
    experts.reserve(kExperts);
    Report("ffn_mxfp4", rows, work, [&] {
      experts.clear();
      for (const std::vector<int32_t>& index : seen) {
        if (index.empty()) continue;
        FfnExpert expert = NextExpert(WeightFormat::kFp4);
        expert.index = index.data();
        expert.weights = ones.data();
        expert.rows = static_cast<int64_t>(index.size());
        experts.push_back(expert);
      }
      RunFfn(x, ColumnOrder::kFp4, experts, y);
    });
  }

  void SharedFfn(int64_t rows) {
    const ScratchArena::Scope scope(context_.scratch());
    const uint16_t* x = Packed(WeightFormat::kFp8, kHidden, rows);
    std::vector<float> y(static_cast<size_t>(rows * kHidden));
    const Work work{.macs = static_cast<double>(rows * 3 * kInner * kHidden),
                    .bytes = ExpertBytes(NextExpert(WeightFormat::kFp8))};
    Report("ffn_shared", rows, work, [&] {
      FfnExpert expert = NextExpert(WeightFormat::kFp8);
      expert.rows = rows;
      RunFfn(x, ColumnOrder::kFp8, {&expert, 1}, y);
    });
  }

  void RunFfn(const uint16_t* x, ColumnOrder order, std::span<const FfnExpert> experts,
              std::vector<float>& y) {
    GatedFfn(
        context_,
        {.x = x, .order = order, .experts = experts, .limit = 10.0f, .round = true, .y = y.data()});
  }

  // What surrounds one sub-block: the mixes, what goes in, what comes out.
  void HyperConnection(int64_t rows) {
    std::vector<float> h = BenchActivations(rows * kStreams * kHidden);
    std::vector<float> y(static_cast<size_t>(rows * kHidden));
    std::vector<float> raw(static_cast<size_t>(rows * kMixes));
    std::vector<float> pre(static_cast<size_t>(rows * kStreams));
    std::vector<float> post(pre.size());
    std::vector<float> comb(pre.size() * kStreams);
    const std::vector<float> fn = BenchActivations(kMixes * kStreams * kHidden);
    const std::vector<float> base(kMixes, 0.0f);
    const std::vector<float> scale(3, 0.01f);
    // Reads and writes the streams once, were everything one pass.
    const Work work{.macs = static_cast<double>(rows * kMixes * kStreams * kHidden),
                    .bytes = static_cast<double>(rows * kStreams * kHidden) * 2 * sizeof(float)};
    Report("mhc", rows, work, [&] {
      Matmul(context_, {.x = h.data(),
                        .order = ColumnOrder::kF32,
                        .x_index = nullptr,
                        .m = rows,
                        .w = {.format = WeightFormat::kF32,
                              .data = fn.data(),
                              .n = kMixes,
                              .k = kStreams * kHidden},
                        .y = raw.data(),
                        .y_stride = kMixes,
                        .round = false});
      HcMixes(context_,
              {.h = h.data(),
               .raw = raw.data(),
               .scale = scale.data(),
               .base = base.data(),
               .num_streams = kStreams,
               .dim = kHidden,
               .rms_eps = 1e-20f,
               .hc_eps = 1e-6f,
               .sinkhorn_iters = 20,
               .pre = pre.data(),
               .post = post.data(),
               .comb = comb.data()},
              rows);
      HcPre(context_,
            {.h = h.data(),
             .pre = pre.data(),
             .num_streams = kStreams,
             .dim = kHidden,
             .round = true,
             .y = y.data()},
            rows);
      HcPost(context_,
             {.y = y.data(),
              .post = post.data(),
              .comb = comb.data(),
              .num_streams = kStreams,
              .dim = kHidden,
              .round = true,
              .h = h.data()},
             rows);
    });
  }

  // Cached rows of `count` entries in blocks, as the block table gives them.
  struct CachedRows {
    std::vector<std::byte> bytes;
    std::vector<std::byte*> blocks;
    BlockRowsView view;
  };
  CachedRows MakeRows(RowFormat format, int64_t dim, int64_t count) {
    const auto row_bytes = static_cast<size_t>(RowBytes(format, static_cast<int>(dim)));
    const auto num_blocks = static_cast<size_t>((count + kBlockEntries - 1) / kBlockEntries);
    CachedRows rows;
    rows.bytes.resize(num_blocks * kBlockEntries * row_bytes);
    // A few hundred different rows are enough: the work does not depend on the values.
    const std::vector<float> values = BenchActivations(256 * dim);
    for (size_t i = 0; i < num_blocks * kBlockEntries; ++i) {
      std::byte* out = rows.bytes.data() + i * row_bytes;
      if (i < 256) {
        EncodeRow(format, {values.data() + i * static_cast<size_t>(dim), static_cast<size_t>(dim)},
                  out);
      } else {
        std::copy_n(out - 256 * row_bytes, row_bytes, out);
      }
    }
    for (size_t b = 0; b < num_blocks; ++b) {
      rows.blocks.push_back(rows.bytes.data() + b * kBlockEntries * row_bytes);
    }
    rows.view = {.blocks = rows.blocks.data(),
                 .offset = 0,
                 .entries_per_block = static_cast<int32_t>(kBlockEntries),
                 .row_bytes = static_cast<int32_t>(row_bytes)};
    return rows;
  }

  void Attention(int64_t rows) {
    constexpr int64_t kEntries = 1 << 14;
    const CachedRows window = MakeRows(RowFormat::kFp8E8M0, kHeadDim, kWindow);
    const CachedRows entries = MakeRows(RowFormat::kFp4E4M3, kHeadDim, kEntries);
    const std::vector<float> q = BenchActivations(rows * kHeads * kHeadDim);
    const std::vector<float> sink(kHeads, 0.0f);
    std::vector<float> o(q.size());
    std::vector<int32_t> selected(static_cast<size_t>(rows * kTopK));
    std::vector<AttentionRow> keys(static_cast<size_t>(rows));
    const auto window_bytes = RowBytes(RowFormat::kFp8E8M0, static_cast<int>(kHeadDim));
    for (int64_t i = 0; i < rows; ++i) {
      int32_t* chosen = selected.data() + i * kTopK;
      for (int j = 0; j < kTopK; ++j) {
        chosen[j] = static_cast<int32_t>(j * (kEntries / kTopK) + (i + j) % (kEntries / kTopK));
      }
      keys[static_cast<size_t>(i)] = {.window = {.ring = window.bytes.data(),
                                                 .fresh = nullptr,
                                                 .fresh_begin = kEntries + 1,
                                                 .floor = 0,
                                                 .ring_rows = kWindow,
                                                 .row_bytes = static_cast<int32_t>(window_bytes)},
                                      .pos = kEntries,
                                      .rows = entries.view,
                                      .selected = chosen,
                                      .num_selected = kTopK};
    }
    // Scores and weighted sum; queries and outputs go by, the rows come from the caches.
    const Work work{.macs = static_cast<double>(rows * kHeads * (kWindow + kTopK) * kHeadDim) * 2,
                    .bytes = static_cast<double>(rows * kHeads * kHeadDim) * 2 * sizeof(float)};
    Report("attention", rows, work, [&] {
      Attend(context_,
             {.q = q.data(),
              .rows = keys.data(),
              .sink = sink.data(),
              .heads = kHeads,
              .dim = kHeadDim,
              .window_size = kWindow,
              .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(kHeadDim))),
              .window_format = RowFormat::kFp8E8M0,
              .rows_format = RowFormat::kFp4E4M3,
              .round = true,
              .o = o.data()},
             rows);
    });
  }

  // One query against `entries` packed keys, and the best of them.
  void IndexTopK(const std::string& name, int64_t entries) {
    dram_ = MeasureDram(context_);
    const RowFormat format = RowFormat::kFp4E8M0;
    const CachedRows keys = MakeRows(format, kIndexDim, entries);
    const CachedRows queries = MakeRows(format, kIndexDim, kIndexHeads);
    const std::vector<float> weights = BenchActivations(kIndexHeads);
    std::vector<int32_t> selected(kTopK);
    int32_t num_selected = 0;
    const Work work{
        .macs = static_cast<double>(entries * kIndexHeads * kIndexDim),
        .bytes = static_cast<double>(entries * RowBytes(format, static_cast<int>(kIndexDim))),
        .integer = true};
    Report(name, 1, work, [&] {
      IndexSelect(context_,
                  {.queries = queries.bytes.data(),
                   .weights = weights.data(),
                   .heads = kIndexHeads,
                   .dim = kIndexDim,
                   .format = format,
                   .keys = &keys.view,
                   .num_visible = &entries,
                   .top_k = kTopK,
                   .selected = selected.data(),
                   .num_selected = &num_selected,
                   .candidates = CandidateUse::kNone,
                   .block_size = 8,
                   .top_blocks = 2048,
                   .candidate_blocks = nullptr,
                   .num_candidate_blocks = nullptr,
                   .margins = nullptr,
                   .candidate_margins = nullptr},
                  1);
    });
  }

  ExecContext& context_;
  const Roofline& roofline_;
  const KernelBenchOptions& options_;
  const std::function<void(const BenchResult&)>& on_result_;
  std::vector<int64_t> rows_;
  WeightPool weights_;
  double dram_ = 0;  // GB/s, measured a moment ago
  std::vector<BenchResult> results_;
};

}  // namespace

std::vector<BenchResult> BenchKernels(ExecContext& context, const Roofline& roofline,
                                      const KernelBenchOptions& options,
                                      const std::function<void(const BenchResult&)>& on_result) {
  const FlushDenormals flush;
  return KernelBench(context, roofline, options, on_result).Run();
}

}  // namespace deepinfer
