// Index scores, top-k, candidate blocks, the selection of whole batches and the expert plan,
// against direct restatements of model.md sections 7.2 to 7.4 and 8.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/ops.h"
#include "kernels/select.h"
#include "tensor/bf16.h"
#include "tensor/row_codec.h"
#include "tests/kernel_cases/kernel_cases.h"

namespace deepinfer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kHeads = 3;
constexpr int64_t kDim = 64;
constexpr RowFormat kFormat = RowFormat::kFp4E8M0;
constexpr int64_t kPerBlock = 16;

struct Selection {
  std::vector<int32_t> kept;  // ascending
  float margin;
};

// The k best by (score descending, index ascending), by sorting everything.
Selection SelectBySorting(const std::vector<float>& scores, int k) {
  std::vector<int32_t> order;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > -kInfinity) order.push_back(static_cast<int32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  const size_t kept = std::min(order.size(), static_cast<size_t>(k));
  Selection result{.kept = {order.begin(), order.begin() + static_cast<int64_t>(kept)},
                   .margin = kInfinity};
  if (kept < order.size()) {
    result.margin =
        scores[static_cast<size_t>(order[kept - 1])] - scores[static_cast<size_t>(order[kept])];
  }
  std::sort(result.kept.begin(), result.kept.end());
  return result;
}

// Index keys in 16-entry blocks, and one query and head weights per row.
class Index {
 public:
  Index(int64_t entries, int64_t rows) : in_(17), keys_(entries), queries_(rows) {
    const int64_t row_bytes = RowBytes(kFormat, kDim);
    bytes_.resize(static_cast<size_t>((entries + kPerBlock) * row_bytes));
    for (int64_t i = 0; i < entries; ++i) {
      keys_[static_cast<size_t>(i)] = Encode(bytes_.data() + i * row_bytes);
    }
    for (int64_t b = 0; b * kPerBlock < entries; ++b) {
      table_.push_back(bytes_.data() + b * kPerBlock * row_bytes);
    }
    query_bytes_.resize(static_cast<size_t>(rows * kHeads * row_bytes));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t h = 0; h < kHeads; ++h) {
        queries_[static_cast<size_t>(r)].push_back(
            Encode(query_bytes_.data() + (r * kHeads + h) * row_bytes));
      }
    }
    weights_ = in_.Bf16Floats(rows * kHeads);
  }

  BlockRowsView view() {
    return {.blocks = table_.data(),
            .offset = 0,
            .entries_per_block = kPerBlock,
            .row_bytes = static_cast<int32_t>(RowBytes(kFormat, kDim))};
  }
  const std::byte* queries() const { return query_bytes_.data(); }
  const float* weights() const { return weights_.data(); }

  // numerics.md section 6, from decoded values.  Groups are exact, so fp64 may stand for integers.
  float Score(int64_t row, int64_t entry) const {
    float score = 0;
    for (int64_t h = 0; h < kHeads; ++h) {
      const std::vector<float>& q = queries_[static_cast<size_t>(row)][static_cast<size_t>(h)];
      const std::vector<float>& k = keys_[static_cast<size_t>(entry)];
      float dot = 0;
      for (size_t group = 0; group < kDim; group += 32) {
        double sum = 0;
        for (size_t i = group; i < group + 32; ++i) {
          sum += static_cast<double>(q[i]) * static_cast<double>(k[i]);
        }
        dot += static_cast<float>(sum);
      }
      const float weight = weights_[static_cast<size_t>(row * kHeads + h)];
      score += RoundToBf16(std::max(RoundToBf16(dot), 0.0f) * weight);
    }
    return RoundToBf16(score);
  }

  std::vector<float> Scores(int64_t row, int64_t visible) const {
    std::vector<float> out;
    for (int64_t entry = 0; entry < visible; ++entry) out.push_back(Score(row, entry));
    return out;
  }

 private:
  // Encodes a random row at `out` -> its values as decoded.
  std::vector<float> Encode(std::byte* out) {
    EncodeRow(kFormat, in_.Bf16Floats(kDim), out);
    std::vector<float> values(kDim);
    DecodeRow(kFormat, out, values);
    return values;
  }

  CaseInputs in_;
  std::vector<std::vector<float>> keys_;
  std::vector<std::vector<std::vector<float>>> queries_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> query_bytes_;
  std::vector<std::byte*> table_;
  std::vector<float> weights_;
};

class SelectionTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  SelectionTest() : context_(*GetParam()) {}
  ExecContext context_;
};

INSTANTIATE_TEST_SUITE_P(EveryIsa, SelectionTest, testing::ValuesIn(SupportedKernels()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(SelectionTest, IndexScoresAreThoseOfThePage) {
  constexpr int64_t kEntries = 50;
  Index index(kEntries, 1);
  std::vector<float> scores(kEntries);
  GetParam()->index_scores({.query = index.queries(),
                            .weights = index.weights(),
                            .heads = kHeads,
                            .dim = kDim,
                            .format = kFormat,
                            .keys = index.view(),
                            .scores = scores.data()},
                           0, kEntries);
  EXPECT_EQ(scores, index.Scores(0, kEntries));
}

TEST_P(SelectionTest, TopKIsWhatSortingGives) {
  CaseInputs in(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores = in.Floats(1 + in.Below(300), 3);
    for (float& score : scores) {
      score = in.Below(10) == 0 ? -kInfinity : std::round(score);
    }
    const auto top_k = static_cast<int>(1 + in.Below(100));
    std::vector<int32_t> selected(static_cast<size_t>(top_k));
    std::vector<int32_t> order(scores.size());
    int32_t num_selected = -1;
    float margin = -1;
    GetParam()->select_top_k({.scores = scores.data(),
                              .num_scores = static_cast<int64_t>(scores.size()),
                              .top_k = top_k,
                              .selected = selected.data(),
                              .num_selected = &num_selected,
                              .order = order.data(),
                              .margin = &margin});
    selected.resize(static_cast<size_t>(num_selected));
    const Selection expected = SelectBySorting(scores, top_k);
    ASSERT_EQ(selected, expected.kept);
    ASSERT_EQ(margin, expected.margin);
  }
}

TEST_P(SelectionTest, NothingUsableSelectsNothing) {
  const std::vector<float> scores(9, -kInfinity);
  std::vector<int32_t> selected(4);
  std::vector<int32_t> order(9);
  int32_t num_selected = -1;
  float margin = 0;
  GetParam()->select_top_k({.scores = scores.data(),
                            .num_scores = 9,
                            .top_k = 4,
                            .selected = selected.data(),
                            .num_selected = &num_selected,
                            .order = order.data(),
                            .margin = &margin});
  EXPECT_EQ(num_selected, 0);
  EXPECT_EQ(margin, kInfinity);
}

// What IndexSelect wrote.
struct Batch {
  std::vector<int32_t> selected;
  std::vector<int32_t> num_selected;
  std::vector<int32_t> blocks;
  std::vector<int32_t> num_blocks;
  std::vector<float> margins;
  std::vector<float> block_margins;

  std::vector<int32_t> Kept(size_t row, size_t top_k) const {
    const auto begin = selected.begin() + static_cast<int64_t>(row * top_k);
    return {begin, begin + num_selected[row]};
  }
};

constexpr int kTopK = 10;
constexpr int kTopBlocks = 4;
constexpr int kBlockSize = 8;

TEST_P(SelectionTest, WholeBatchesSelectAsTheirRowsWouldAlone) {
  const std::vector<int64_t> visible = {0, 1, 7, 33, 70, 64};
  const auto rows = static_cast<int64_t>(visible.size());
  Index index(70, rows);
  const std::vector<BlockRowsView> keys(visible.size(), index.view());
  const size_t n = visible.size();
  Batch batch{.selected = std::vector<int32_t>(n * kTopK),
              .num_selected = std::vector<int32_t>(n),
              .blocks = std::vector<int32_t>(n * kTopBlocks),
              .num_blocks = std::vector<int32_t>(n),
              .margins = std::vector<float>(n),
              .block_margins = std::vector<float>(n)};
  IndexSelectParams params{.queries = index.queries(),
                           .weights = index.weights(),
                           .heads = kHeads,
                           .dim = kDim,
                           .format = kFormat,
                           .keys = keys.data(),
                           .num_visible = visible.data(),
                           .top_k = kTopK,
                           .selected = batch.selected.data(),
                           .num_selected = batch.num_selected.data(),
                           .candidates = CandidateUse::kMake,
                           .block_size = kBlockSize,
                           .top_blocks = kTopBlocks,
                           .candidate_blocks = batch.blocks.data(),
                           .num_candidate_blocks = batch.num_blocks.data(),
                           .margins = batch.margins.data(),
                           .candidate_margins = batch.block_margins.data()};
  IndexSelect(context_, params, rows);
  for (size_t row = 0; row < n; ++row) {
    const std::vector<float> scores = index.Scores(static_cast<int64_t>(row), visible[row]);
    const Selection expected = SelectBySorting(scores, kTopK);
    EXPECT_EQ(batch.Kept(row, kTopK), expected.kept) << row;
    EXPECT_EQ(batch.margins[row], expected.margin) << row;
    std::vector<float> block_scores((scores.size() + kBlockSize - 1) / kBlockSize, -kInfinity);
    for (size_t i = 0; i < scores.size(); ++i) {
      block_scores[i / kBlockSize] = std::max(block_scores[i / kBlockSize], scores[i]);
    }
    if (!block_scores.empty()) block_scores.back() = kInfinity;  // of the newest entry
    const Selection blocks = SelectBySorting(block_scores, kTopBlocks);
    const auto begin = batch.blocks.begin() + static_cast<int64_t>(row * kTopBlocks);
    EXPECT_EQ(std::vector<int32_t>(begin, begin + batch.num_blocks[row]), blocks.kept) << row;
    EXPECT_EQ(batch.block_margins[row], blocks.margin) << row;
  }

  // A later layer competes inside these blocks only.
  params.candidates = CandidateUse::kUse;
  IndexSelect(context_, params, rows);
  for (size_t row = 0; row < n; ++row) {
    std::vector<float> scores = index.Scores(static_cast<int64_t>(row), visible[row]);
    const auto begin = batch.blocks.begin() + static_cast<int64_t>(row * kTopBlocks);
    const std::vector<int32_t> blocks(begin, begin + batch.num_blocks[row]);
    for (size_t i = 0; i < scores.size(); ++i) {
      const auto block = static_cast<int32_t>(i / kBlockSize);
      if (!std::binary_search(blocks.begin(), blocks.end(), block)) scores[i] = -kInfinity;
    }
    const Selection expected = SelectBySorting(scores, kTopK);
    EXPECT_EQ(batch.Kept(row, kTopK), expected.kept) << row;
    EXPECT_EQ(batch.margins[row], expected.margin) << row;
  }
}

// One row of many entries, in both steps of the hierarchical selection.
Batch SelectOneRow(ExecContext& context, Index& index, int64_t visible) {
  const BlockRowsView keys = index.view();
  Batch batch{.selected = std::vector<int32_t>(kTopK),
              .num_selected = std::vector<int32_t>(1),
              .blocks = std::vector<int32_t>(kTopBlocks),
              .num_blocks = std::vector<int32_t>(1),
              .margins = std::vector<float>(1),
              .block_margins = std::vector<float>(1)};
  IndexSelectParams params{.queries = index.queries(),
                           .weights = index.weights(),
                           .heads = kHeads,
                           .dim = kDim,
                           .format = kFormat,
                           .keys = &keys,
                           .num_visible = &visible,
                           .top_k = kTopK,
                           .selected = batch.selected.data(),
                           .num_selected = batch.num_selected.data(),
                           .candidates = CandidateUse::kMake,
                           .block_size = kBlockSize,
                           .top_blocks = kTopBlocks,
                           .candidate_blocks = batch.blocks.data(),
                           .num_candidate_blocks = batch.num_blocks.data(),
                           .margins = batch.margins.data(),
                           .candidate_margins = batch.block_margins.data()};
  IndexSelect(context, params, 1);
  params.candidates = CandidateUse::kUse;
  IndexSelect(context, params, 1);
  return batch;
}

TEST_P(SelectionTest, ThreadsThatShareARowSelectWhatOneDoes) {
  constexpr int64_t kEntries = 4500;  // several ranges of entries, the last one short
  Index index(kEntries, 1);
  const Batch expected = SelectOneRow(context_, index, kEntries);
  for (int threads = 2; threads <= 4; ++threads) {
    ExecContext context(*GetParam(), threads);
    const Batch found = SelectOneRow(context, index, kEntries);
    EXPECT_EQ(found.selected, expected.selected) << threads;
    EXPECT_EQ(found.blocks, expected.blocks) << threads;
    EXPECT_EQ(found.margins, expected.margins) << threads;
    EXPECT_EQ(found.block_margins, expected.block_margins) << threads;
  }
}

TEST(ExpertPlanTest, ListsTheRowsOfEveryChosenExpertInAscendingOrder) {
  ExecContext context(ScalarKernels());
  const ScratchArena::Scope scope(context.scratch());
  const std::vector<int32_t> experts = {5, 0, 2, 5, 0, 5};
  const std::vector<float> weights = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f};
  const ExpertPlan plan = PlanExperts(context, experts.data(), weights.data(),
                                      {.rows = 3, .top_k = 2, .num_experts = 8});
  ASSERT_EQ(plan.num_experts, 3);
  EXPECT_EQ(std::vector<int32_t>(plan.experts, plan.experts + 3), (std::vector<int32_t>{0, 2, 5}));
  EXPECT_EQ(std::vector<int32_t>(plan.offsets, plan.offsets + 4),
            (std::vector<int32_t>{0, 2, 3, 6}));
  EXPECT_EQ(std::vector<int32_t>(plan.rows, plan.rows + 6),
            (std::vector<int32_t>{0, 2, 1, 0, 1, 2}));
  EXPECT_EQ(std::vector<float>(plan.weights, plan.weights + 6),
            (std::vector<float>{0.2f, 0.5f, 0.3f, 0.1f, 0.4f, 0.6f}));
}

TEST(ExpertPlanTest, NoRowsChooseNoExperts) {
  ExecContext context(ScalarKernels());
  const ScratchArena::Scope scope(context.scratch());
  const ExpertPlan plan =
      PlanExperts(context, nullptr, nullptr, {.rows = 0, .top_k = 2, .num_experts = 8});
  EXPECT_EQ(plan.num_experts, 0);
  EXPECT_EQ(plan.offsets[0], 0);
}

}  // namespace
}  // namespace deepinfer
