#include <gtest/gtest.h>

#include <filesystem>

#include "model/ngram_layout.h"
#include "model/step_size.h"
#include "synth/presets.h"
#include "synth/synthesize.h"
#include "tests/support/scratch_dir.h"
#include "verify/determinism.h"
#include "verify/determinism_cases.h"

namespace deepinfer {
namespace {

TEST(DeterminismSlowTest, EveryAxisOfNanoIsEqualInEveryBit) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kNano);
  ASSERT_NE(model, nullptr);
  EXPECT_GT(ExpectEqualAxes(*model, {}), 200);
}

TEST(DeterminismSlowTest, EveryAxisOfNanoInFp32IsEqualInEveryBit) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kNanoFp32);
  ASSERT_NE(model, nullptr);
  EXPECT_GT(ExpectEqualAxes(*model, {.tokens = 290, .seed = 2, .quick = true}), 50);
}

TEST(DeterminismSlowTest, EveryAxisOfAWideWindowInFp32IsEqualInEveryBit) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kWideFp32);
  ASSERT_NE(model, nullptr);
  EXPECT_GT(ExpectEqualAxes(*model, {.tokens = 230, .seed = 3, .quick = true}), 50);
}

TEST(DeterminismSlowTest, PromptsAroundMoreEdgesOfNanoAreEqual) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kNano);
  ASSERT_NE(model, nullptr);
  for (const int64_t length : {100, 130, 139, 141, 255, 256, 257, 508, 509, 510}) {
    EXPECT_GE(ExpectEqualAxes(*model, {.tokens = length, .seed = 6}, kLengthAxes), 12);
  }
}

// Rows of an exact prefill at the released depth; several steps' worth of blocks.
TEST(DeterminismSlowTest, LongPromptsOfNanoAreEqual) {
  const std::unique_ptr<ModelInstance> model = LoadForRuns(kNano);
  ASSERT_NE(model, nullptr);
  for (const int64_t length : {2540, 2541, 2542}) {
    const bool quick = length != 2541;
    EXPECT_GE(ExpectEqualAxes(*model, {.tokens = length, .seed = 4, .quick = quick}, kLengthAxes),
              quick ? 8 : 20);
  }
  // An exact replay here starts behind position 0.
  EXPECT_GE(ExpectEqualAxes(*model, {.tokens = 2541, .seed = 4, .quick = true},
                            {"hits, exact", "hits, compact", "hits, mask", "bounded replay"}),
            12);
}

// The released dimensions in four layers: every kernel sees its real shapes.
class ReleasedDimensionsTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<ModelConfig> config = ConfigOf(
        Preset::kV41Slice,
        {.experts = 8, .vocab_size = 1024, .max_position_embeddings = 4096, .no_draft = true});
    ASSERT_TRUE(config.ok()) << config.status().message();
    config->ngram_vocab_size = 9973;  // the released tables alone are a gigabyte
    config->ngram_table_rows = NgramLayout::DerivedTableRows(*config);
    const Result<SynthReport> written =
        Synthesize(*config, {.dir = scratch_ / "slice", .seed = 12});
    ASSERT_TRUE(written.ok()) << written.status().message();
    EXPECT_LE(written->bytes, int64_t{3} << 29);
    Result<std::unique_ptr<ModelInstance>> model =
        ModelInstance::Load({.dir = scratch_ / "slice", .max_sequences = kRunSequences});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
  }

  const ScratchDir scratch_;
  std::unique_ptr<ModelInstance> model_;
};

TEST_F(ReleasedDimensionsTest, AStepTakesTheScratchThatIsPlanned) {
  constexpr int64_t kRows = 700;
  const TokenStream stream = RandomStream(kRows, 0, model_->config().vocab_size, 3);
  SequenceState state = model_->NewSequence();
  const SequenceSlice slice{.state = &state, .num_rows = kRows};
  ASSERT_TRUE(model_->transformer()
                  .Forward(model_->context(), {.rows = stream.rows, .slices = {&slice, 1}}, {})
                  .ok());
  const auto planned = static_cast<double>(StepScratchBytes(
      model_->config(), model_->layout(),
      {.rows = kRows, .max_len = kRows, .threads = model_->context().num_threads()}));
  const auto taken = static_cast<double>(model_->context().scratch().peak());
  EXPECT_LE(taken, planned * 1.001);
  EXPECT_GE(taken, planned * 0.95);
}

TEST_F(ReleasedDimensionsTest, EveryAxisIsEqualInEveryBit) {
  EXPECT_GT(ExpectEqualAxes(*model_, {.tokens = 16, .quick = true}), 40);
  // The window's edge, and a hit.
  EXPECT_EQ(ExpectEqualAxes(*model_, {.tokens = 270, .quick = true},
                            {"chunks", "hits, compact", "bounded replay"}),
            8);
}

}  // namespace
}  // namespace deepinfer
