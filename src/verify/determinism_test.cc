#include "verify/determinism.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "verify/determinism_cases.h"

namespace deepinfer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(DeterminismTest, EveryAxisOfTinyIsEqualInEveryBit) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kTiny);
  ASSERT_NE(model, nullptr);
  EXPECT_GT(ExpectEqualAxes(*model, {.tokens = 100}), 200);
}

TEST(DeterminismTest, EveryAxisOfTinyInFp32IsEqualInEveryBit) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kTinyFp32);
  ASSERT_NE(model, nullptr);
  EXPECT_GT(ExpectEqualAxes(*model, {.tokens = 60, .seed = 2, .quick = true}), 50);
}

TEST(DeterminismTest, EveryAxisOfAWideWindowIsEqualInEveryBit) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kWide);
  ASSERT_NE(model, nullptr);
  EXPECT_GT(ExpectEqualAxes(*model, {.tokens = 230, .seed = 3, .quick = true}), 50);
}

TEST(DeterminismTest, EveryAxisOfNanoIsEqualInEveryBit) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kNano);
  ASSERT_NE(model, nullptr);
  EXPECT_GT(ExpectEqualAxes(*model, {.tokens = 290, .seed = 4, .quick = true}), 50);
}

// Window 8: its edges, and those of the rows of an exact prefill (29, 22, 15, 8).
TEST(DeterminismTest, PromptsAroundEveryEdgeOfTinyAreEqual) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kTiny);
  ASSERT_NE(model, nullptr);
  for (const int64_t length : {1, 2, 7, 8, 9, 15, 19, 20, 21, 22, 23, 28, 29, 30, 73}) {
    EXPECT_GE(ExpectEqualAxes(*model, {.tokens = length, .seed = 5}, kLengthAxes), 3);
  }
}

// Window 128, 140 rows kept; more lengths in the slow test.
TEST(DeterminismTest, PromptsAroundEveryEdgeOfNanoAreEqual) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kNano);
  ASSERT_NE(model, nullptr);
  for (const int64_t length : {1, 2, 39, 40, 41, 126, 127, 128, 129, 140}) {
    EXPECT_GE(ExpectEqualAxes(*model, {.tokens = length, .seed = 6}, kLengthAxes), 3);
  }
}

// Block-aligned hits of all lengths, with rows before the hit that do not reach back to position 0.
TEST(DeterminismTest, HitsOfEverySeedEqualColdRuns) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kTiny);
  ASSERT_NE(model, nullptr);
  for (const uint64_t seed : {7, 8}) {
    EXPECT_GE(ExpectEqualAxes(*model, {.tokens = 150, .seed = seed},
                              {"hits, exact", "hits, compact", "hits, mask", "bounded replay"}),
              24);
  }
}

class DeterminismReportTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = LoadForRuns(kTiny);
    ASSERT_NE(model_, nullptr);
    const Result<std::vector<Axis>> axes = DeterminismAxes(*model_, {.tokens = 40});
    ASSERT_TRUE(axes.ok());
    chunks_ = axes->front();
    ASSERT_EQ(chunks_.name, "chunks");
  }

  // The chunks axis, with a change to what the run in chunks of 7 found.
  AxisReport RunChanged(const std::function<void(StreamBits&)>& change) {
    const Result<AxisReport> report =
        RunAxis(*model_, chunks_,
                [&](ModelInstance& model, const std::vector<TokenStream>& streams,
                    const RunPlan& plan) -> Result<std::vector<StreamBits>> {
                  Result<std::vector<StreamBits>> bits = RunStreams(model, streams, plan);
                  if (plan.chunk == 7) change(bits->front());
                  return bits;
                });
    EXPECT_TRUE(report.ok());
    return report.ok() ? *report : AxisReport{};
  }

  std::unique_ptr<ModelInstance> model_;
  Axis chunks_;
};

TEST_F(DeterminismReportTest, OneBitOfOneLogitIsFoundAndNamed) {
  const auto vocab = static_cast<size_t>(model_->config().vocab_size);
  float other = 0;
  const AxisReport report = RunChanged([&](StreamBits& bits) {
    float& logit = bits.logits[12 * vocab + 34];
    logit = std::bit_cast<float>(std::bit_cast<uint32_t>(logit) ^ 1);
    other = logit;
  });
  ASSERT_TRUE(report.difference.has_value());
  EXPECT_THAT(*report.difference,
              StartsWith("full in chunks of 7 against full: row 12 logit 34: found "));
  EXPECT_THAT(*report.difference, HasSubstr(", expected "));
  EXPECT_EQ(report.comparisons, 2);  // it stops there
  EXPECT_THAT(ReportText(report), StartsWith("chunks                   2 DIFFERS "));
  EXPECT_THAT(ReportText(report), HasSubstr("\n  " + *report.difference + "\n"));
}

TEST_F(DeterminismReportTest, AnotherStateIsFoundAndItsPartIsNamed) {
  // The state of a run of other tokens after the first 20.
  std::vector<TokenStream> other = chunks_.streams;
  other.front().rows[20].token ^= 1;
  const std::string state = (*RunStreams(*model_, other, chunks_.reference)).front().after_prompt;
  const AxisReport report = RunChanged([&](StreamBits& bits) { bits.after_prompt = state; });
  ASSERT_TRUE(report.difference.has_value());
  EXPECT_THAT(*report.difference,
              HasSubstr("state after the prompt: compressed entry 10 of layer 2, byte "));
}

TEST_F(DeterminismReportTest, TokensOfAnotherSeedDiffer) {
  const Result<std::vector<Axis>> axes = DeterminismAxes(*model_, {.tokens = 40, .seed = 2});
  ASSERT_TRUE(axes.ok());
  const auto found = RunStreams(*model_, axes->front().streams, chunks_.reference);
  const auto expected = RunStreams(*model_, chunks_.streams, chunks_.reference);
  ASSERT_TRUE(found.ok() && expected.ok());
  EXPECT_EQ(FirstDifference(*model_, *expected, *expected), std::nullopt);
  EXPECT_THAT(FirstDifference(*model_, *found, *expected).value_or(""), StartsWith("row 0 logit"));
}

TEST_F(DeterminismReportTest, AnApproximateReplayIsNotAColdRun) {
  const PrefillOptions compact{.mode = PrefillMode::kCompact, .keep = 8};
  const auto cold = RunStreams(*model_, chunks_.streams, {.name = "cold", .prefill = compact});
  const auto bounded = RunStreams(
      *model_, chunks_.streams,
      {.name = "bounded", .prefill = compact, .hit = 32, .windows = ReplayRecord::Kind::kBounded});
  ASSERT_TRUE(cold.ok() && bounded.ok());
  EXPECT_NE(FirstDifference(*model_, *bounded, *cold), std::nullopt);
}

TEST_F(DeterminismReportTest, PromptsThatDoNotFitAreRefused) {
  for (const int64_t tokens : {int64_t{-1}, model_->max_model_len()}) {
    const auto axes = DeterminismAxes(*model_, {.tokens = tokens});
    ASSERT_FALSE(axes.ok());
    EXPECT_EQ(axes.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(std::string(axes.status().message()), HasSubstr("--tokens: found "));
  }
}

TEST(DeterminismTest, AContextThatIsTooShortIsRefused) {
  const auto model =
      ModelInstance::Load({.dir = Path(DEEPINFER_SOURCE_DIR) / kTiny.dir, .max_model_len = 80});
  ASSERT_TRUE(model.ok());
  const auto axes = DeterminismAxes(**model, {});
  ASSERT_FALSE(axes.ok());
  EXPECT_THAT(std::string(axes.status().message()),
              HasSubstr("--max-model-len: found 80, expected at least 81"));
}

TEST_F(DeterminismReportTest, AStopEndsTheMatrix) {
  model_->context().RequestStop();
  const auto reports = VerifyDeterminism(*model_, {.tokens = 40}, nullptr);
  model_->context().ClearStop();
  ASSERT_FALSE(reports.ok());
  EXPECT_EQ(reports.status().code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace deepinfer
