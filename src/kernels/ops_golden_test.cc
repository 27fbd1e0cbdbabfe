// Ops against the goldens of tests/golden, within the tolerances of its README: bf16 outputs differ
// by one bf16 step on at most 1 % of the values, fp32 outputs by 2e-6 relative, selections not at
// all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/math.h"
#include "kernels/ops.h"
#include "kernels/rope_table.h"
#include "kernels/select.h"
#include "tensor/bf16.h"
#include "tests/support/op_goldens.h"

namespace deepinfer {
namespace {

constexpr double kFp32Tolerance = 2e-6;

std::vector<uint16_t> ToBf16(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float value : values) out.push_back(FloatToBf16(value));
  return out;
}

class OpsGoldenTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  OpsGoldenTest() : context_(*GetParam()) {}

  // y [m, w.n] = x [m, w.k] * w^T, packed in the order of w.
  std::vector<float> Linear(const std::vector<float>& x, const WeightView& w, ColumnOrder order,
                            bool round) {
    const auto m = static_cast<int64_t>(x.size()) / w.k;
    std::vector<uint16_t> packed(static_cast<size_t>(m * PackedStride(order, w.k)));
    Pack(context_,
         {.x = x.data(),
          .x_stride = w.k,
          .k = w.k,
          .quantize = order != ColumnOrder::kNatural,
          .order = order,
          .out = packed.data()},
         m);
    std::vector<float> y(static_cast<size_t>(m * w.n));
    Matmul(context_, {.x = packed.data(),
                      .order = order,
                      .x_index = nullptr,
                      .m = m,
                      .w = w,
                      .y = y.data(),
                      .y_stride = w.n,
                      .round = round});
    return y;
  }

  ExecContext context_;
};

INSTANTIATE_TEST_SUITE_P(EveryIsa, OpsGoldenTest, testing::ValuesIn(SupportedKernels()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(OpsGoldenTest, Fp8LinearMatches) {
  const nlohmann::json golden = OpGoldens("ops_extra")["fp8_linear"];
  const std::vector<uint8_t> codes = Integers<uint8_t>(golden["weight_code"]);
  const std::vector<uint8_t> scales = Integers<uint8_t>(golden["scale_code"]);
  const WeightView w{.format = WeightFormat::kFp8,
                     .data = codes.data(),
                     .scales = scales.data(),
                     .n = golden["n"],
                     .k = golden["k"]};
  const std::vector<float> expected = Floats(golden["y_bf16"]);
  const int flips =
      CountBf16Flips(Linear(Floats(golden["x"]), w, ColumnOrder::kFp8, true), expected);
  EXPECT_LE(flips, static_cast<int>(expected.size() / 100));
  RecordProperty("flips", flips);
}

TEST_P(OpsGoldenTest, Fp4LinearMatches) {
  const nlohmann::json golden = OpGoldens("ops_extra")["fp4_linear"];
  const std::vector<uint8_t> packed = Integers<uint8_t>(golden["packed"]);
  const std::vector<uint8_t> scales = Integers<uint8_t>(golden["scale_code"]);
  const WeightView w{.format = WeightFormat::kFp4,
                     .data = packed.data(),
                     .scales = scales.data(),
                     .n = golden["n"],
                     .k = golden["k"]};
  const std::vector<float> expected = Floats(golden["y_bf16"]);
  const int flips =
      CountBf16Flips(Linear(Floats(golden["x"]), w, ColumnOrder::kFp4, true), expected);
  EXPECT_LE(flips, static_cast<int>(expected.size() / 100));
  RecordProperty("flips", flips);
}

TEST_P(OpsGoldenTest, RmsNormMatchesForBothEpsilons) {
  const nlohmann::json golden = OpGoldens("ops_extra")["rmsnorm_bf16"];
  const std::vector<float> x = Floats(golden["x"]);
  const std::vector<uint16_t> weight = ToBf16(Floats(golden["weight"]));
  const int64_t rows = golden["rows"];
  const int64_t dim = golden["cols"];
  for (const auto& [eps, key] : {std::pair{1e-20f, "y"}, std::pair{1e-6f, "y_eps_1e6"}}) {
    std::vector<float> y(x.size());
    RmsNorm(context_,
            {.x = x.data(),
             .x_stride = dim,
             .weight = weight.data(),
             .dim = dim,
             .eps = eps,
             .round = true,
             .y = y.data()},
            rows);
    const int flips = CountBf16Flips(y, Floats(golden[key]));
    EXPECT_LE(flips, static_cast<int>(y.size() / 100));
    RecordProperty("flips", flips);
  }
}

// The golden's list has holes anywhere, ours only in the window.  A hole is therefore a key whose
// scores are so low that its probability is 0.  An empty window block comes first.
std::vector<float> KeyOfAHole(const std::vector<float>& q, int64_t heads, int64_t dim) {
  std::vector<float> key(static_cast<size_t>(dim), 0.0f);
  for (size_t i = 0; i < q.size(); ++i) {
    key[i % static_cast<size_t>(dim)] -= 1000.0f * q[i];
  }
  for (float& value : key) value = RoundToBf16(value);
  for (int64_t h = 0; h < heads; ++h) {
    float dot = 0;
    for (int64_t i = 0; i < dim; ++i) {
      dot += q[static_cast<size_t>(h * dim + i)] * key[static_cast<size_t>(i)];
    }
    EXPECT_LT(dot, -5000.0f);
  }
  return key;
}

TEST_P(OpsGoldenTest, SinkAttentionMatchesInBothNumerics) {
  const nlohmann::json golden = OpGoldens("ops_extra")["sink_attention"];
  const int64_t heads = golden["heads"];
  const int64_t dim = golden["dim"];
  const int32_t slots = golden["slots"];
  const std::vector<float> q = Floats(golden["q"]);
  const std::vector<float> sink = Floats(golden["sink"]);
  const std::vector<int> valid = Integers<int>(golden["valid"]);
  std::vector<float> keys = Floats(golden["keys"]);
  const std::vector<float> hole = KeyOfAHole(q, heads, dim);
  std::vector<int32_t> selected;
  for (int32_t slot = 0; slot < slots; ++slot) {
    selected.push_back(slot);
    if (valid[static_cast<size_t>(slot)] == 0) {
      std::copy(hole.begin(), hole.end(), keys.begin() + slot * dim);
    }
  }
  auto* block = reinterpret_cast<std::byte*>(keys.data());
  const auto row_bytes = static_cast<int32_t>(dim * 4);
  const AttentionRow row{
      .window = {.ring = block,
                 .fresh = block,
                 .fresh_begin = 0,
                 .floor = 1 << 20,  // no window key at all
                 .ring_rows = 64,
                 .row_bytes = row_bytes},
      .pos = 1000,
      .rows = {.blocks = &block, .offset = 0, .entries_per_block = slots, .row_bytes = row_bytes},
      .selected = selected.data(),
      .num_selected = slots};
  std::vector<float> o(q.size());
  AttentionParams params{.q = q.data(),
                         .rows = &row,
                         .sink = sink.data(),
                         .heads = heads,
                         .dim = dim,
                         .window_size = 64,
                         .scale = golden["scale"],
                         .window_format = RowFormat::kF32,
                         .rows_format = RowFormat::kF32,
                         .round = true,
                         .o = o.data()};
  Attend(context_, params, 1);
  const int flips = CountBf16Flips(o, Floats(golden["o_release"]));
  EXPECT_LE(flips, static_cast<int>(o.size() / 100));
  RecordProperty("flips", flips);

  params.round = false;
  Attend(context_, params, 1);
  EXPECT_LE(MaxRelativeError(o, Floats(golden["o_fp32"]), 1e-2), kFp32Tolerance);
}

TEST_P(OpsGoldenTest, HyperConnectionMixesMatch) {
  const nlohmann::json golden = OpGoldens("ops")["sinkhorn"];
  const std::vector<float> raw = Floats(golden["mixes"]);
  const std::vector<float> scale = Floats(golden["scale"]);
  const std::vector<float> base = Floats(golden["base"]);
  constexpr int64_t kRows = 3;
  constexpr int64_t kDim = 32;
  const std::vector<float> h(kRows * 4 * kDim, 1.0f);  // mean square 1: the mixes are not scaled
  std::vector<float> pre(kRows * 4);
  std::vector<float> post(kRows * 4);
  std::vector<float> comb(kRows * 16);
  HcMixes(context_,
          {.h = h.data(),
           .raw = raw.data(),
           .scale = scale.data(),
           .base = base.data(),
           .num_streams = 4,
           .dim = kDim,
           .rms_eps = 1e-20f,
           .hc_eps = 1e-6f,
           .sinkhorn_iters = 20,
           .pre = pre.data(),
           .post = post.data(),
           .comb = comb.data()},
          kRows);
  EXPECT_LE(MaxRelativeError(pre, Floats(golden["pre"])), kFp32Tolerance);
  EXPECT_LE(MaxRelativeError(post, Floats(golden["post"])), kFp32Tolerance);
  EXPECT_LE(MaxRelativeError(comb, Floats(golden["comb"])), kFp32Tolerance);
}

TEST_P(OpsGoldenTest, SinkhornOfExtremeLogitsMatches) {
  const nlohmann::json golden = OpGoldens("ops_extra")["sinkhorn_extra"];
  const std::vector<float> logits = Floats(golden["logits"]);
  const auto rows = static_cast<int64_t>(logits.size()) / 16;
  constexpr int64_t kDim = 32;
  const std::vector<float> h(static_cast<size_t>(rows * 4 * kDim), 1.0f);
  std::vector<float> raw(static_cast<size_t>(rows * 24), 0.0f);
  for (size_t i = 0; i < logits.size(); ++i) raw[i / 16 * 24 + 8 + i % 16] = logits[i];
  const std::vector<float> scale(3, 1.0f);
  const std::vector<float> base(24, 0.0f);
  std::vector<float> pre(static_cast<size_t>(rows * 4));
  std::vector<float> post(pre.size());
  std::vector<float> comb(logits.size());
  HcMixes(context_,
          {.h = h.data(),
           .raw = raw.data(),
           .scale = scale.data(),
           .base = base.data(),
           .num_streams = 4,
           .dim = kDim,
           .rms_eps = 1e-20f,
           .hc_eps = golden["eps"],
           .sinkhorn_iters = golden["iters"],
           .pre = pre.data(),
           .post = post.data(),
           .comb = comb.data()},
          rows);
  EXPECT_LE(MaxRelativeError(comb, Floats(golden["comb"])), kFp32Tolerance);
}

TEST_P(OpsGoldenTest, RopeRotatesAndTheInverseBringsItBack) {
  const nlohmann::json golden = OpGoldens("ops")["rope_apply_dim8_pos5_6"];
  const std::vector<int64_t> positions = {5, 6};
  const RopeTable table(8, 10000.0);
  std::vector<float> cos(8);
  std::vector<float> sin(8);
  table.Fill(positions, cos.data(), sin.data());
  std::vector<float> x = Floats(golden["x"]);
  RopeParams params{.x = x.data(),
                    .heads = 3,
                    .dim = 8,
                    .rope_dim = 8,
                    .cos = cos.data(),
                    .sin = sin.data(),
                    .inverse = false,
                    .round = false};
  Rope(context_, params, 2);
  EXPECT_LE(MaxRelativeError(x, Floats(golden["y"]), 0.1), kFp32Tolerance);
  x = Floats(golden["y"]);
  params.x = x.data();
  params.inverse = true;
  Rope(context_, params, 2);
  EXPECT_LE(MaxRelativeError(x, Floats(golden["inverse_of_y"]), 0.1), kFp32Tolerance);
}

TEST_P(OpsGoldenTest, RoutingMatchesForTextAndImageRows) {
  const nlohmann::json golden = OpGoldens("ops_extra")["route"];
  const std::vector<uint16_t> weight = ToBf16(Floats(golden["weight"]));
  const std::vector<float> bias = Floats(golden["bias"]);
  const std::vector<float> bias_image = Floats(golden["bias_vl"]);
  const std::vector<uint8_t> image = Integers<uint8_t>(golden["image"]);
  const WeightView w{.format = WeightFormat::kBf16,
                     .data = weight.data(),
                     .n = golden["experts"],
                     .k = golden["dim"]};
  const std::vector<float> logits = Linear(Floats(golden["x"]), w, ColumnOrder::kNatural, false);
  const int top_k = golden["top"];
  std::vector<int32_t> experts(image.size() * static_cast<size_t>(top_k));
  std::vector<float> weights(experts.size());
  std::vector<float> margins(image.size());
  Route(context_,
        {.logits = logits.data(),
         .bias = bias.data(),
         .bias_image = bias_image.data(),
         .is_image = image.data(),
         .num_experts = static_cast<int>(w.n),
         .top_k = top_k,
         .scale = golden["scale"],
         .experts = experts.data(),
         .weights = weights.data(),
         .margins = margins.data()},
        static_cast<int64_t>(image.size()));
  std::vector<int32_t> expected;
  for (const nlohmann::json& row : golden["idx"]) {
    for (const nlohmann::json& id : row) expected.push_back(id);
  }
  EXPECT_EQ(experts, expected);
  EXPECT_LE(MaxRelativeError(weights, Floats(golden["w"])), kFp32Tolerance);
  for (const float margin : margins) EXPECT_GE(margin, 0.0f);
}

TEST_P(OpsGoldenTest, TopKBreaksTiesByIndex) {
  const nlohmann::json golden = OpGoldens("ops_extra")["topk_ties"];
  const std::vector<float> scores = Floats(golden["scores"]);
  for (const auto& [key, best] : golden["best"].items()) {
    const int top_k = std::stoi(key);
    std::vector<int32_t> selected(static_cast<size_t>(top_k));
    std::vector<int32_t> order(scores.size());
    int32_t num_selected = 0;
    float margin = 0;
    context_.kernels().select_top_k({.scores = scores.data(),
                                     .num_scores = static_cast<int64_t>(scores.size()),
                                     .top_k = top_k,
                                     .selected = selected.data(),
                                     .num_selected = &num_selected,
                                     .order = order.data(),
                                     .margin = &margin});
    std::vector<int32_t> expected = Integers<int32_t>(best);
    EXPECT_EQ(num_selected, top_k);
    std::vector<float> sorted = scores;
    std::sort(sorted.rbegin(), sorted.rend());
    const auto k = static_cast<size_t>(top_k);
    EXPECT_EQ(margin, sorted[k - 1] - sorted[k]);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(selected, expected);
  }
}

TEST_P(OpsGoldenTest, CandidateBlocksMatch) {
  const nlohmann::json golden = OpGoldens("ops_extra")["candidate_blocks"];
  const int block_size = golden["block"];
  const int keep = golden["keep"];
  for (const nlohmann::json& item : golden["cases"]) {
    const std::vector<float> scores = Floats(item["scores"]);
    std::vector<int32_t> blocks(static_cast<size_t>(keep));
    std::vector<float> block_scores(scores.size());
    std::vector<int32_t> order(scores.size());
    int32_t num_blocks = 0;
    context_.kernels().candidate_blocks({.scores = scores.data(),
                                         .num_scores = static_cast<int64_t>(scores.size()),
                                         .block_size = block_size,
                                         .top_blocks = keep,
                                         .blocks = blocks.data(),
                                         .num_blocks = &num_blocks,
                                         .block_scores = block_scores.data(),
                                         .order = order.data(),
                                         .margin = nullptr});
    std::vector<int> mask(scores.size(), 0);
    for (int32_t i = 0; i < num_blocks; ++i) {
      for (int j = 0; j < block_size; ++j) {
        const auto entry = static_cast<size_t>(blocks[static_cast<size_t>(i)] * block_size + j);
        if (entry < mask.size()) mask[entry] = 1;
      }
    }
    EXPECT_EQ(mask, Integers<int>(item["mask"]));
  }
}

TEST_P(OpsGoldenTest, SwigluClampsAsTheGoldens) {
  const nlohmann::json golden = OpGoldens("ops_extra")["swiglu_clamped"];
  const std::vector<float> gate = Floats(golden["gate"]);
  const std::vector<float> up = Floats(golden["up"]);
  std::vector<float> y(gate.size());
  Swiglu(context_,
         {.gate = gate.data(),
          .up = up.data(),
          .row_weight = nullptr,
          .dim = static_cast<int64_t>(gate.size()),
          .limit = golden["limit"],
          .round = false,
          .y = y.data()},
         1);
  EXPECT_LE(MaxRelativeError(y, Floats(golden["y"])), kFp32Tolerance);
}

TEST(OpGoldenFunctionTest, SquareRootOfSoftplusMatches) {
  const nlohmann::json golden = OpGoldens("ops_extra")["sqrt_softplus"];
  std::vector<float> y;
  for (const float x : Floats(golden["x"])) y.push_back(std::sqrt(PreciseSoftplus(x)));
  EXPECT_LE(MaxRelativeError(y, Floats(golden["y"]), 1e-12), kFp32Tolerance);
}

}  // namespace
}  // namespace deepinfer
