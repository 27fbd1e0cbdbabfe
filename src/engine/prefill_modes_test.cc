// Prefill modes give the bits they promise, for any chunks (model.md section 7.7).
#include "engine/same_bits.h"
#include "model/prefill.h"

namespace deepinfer {
namespace {

class PrefillModesTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    model_ = LoadOrDie({.dir = Path(DEEPINFER_SOURCE_DIR) / "tests/golden/tiny"});
    ASSERT_NE(model_, nullptr);
    rows_ = TextRows(RandomTokens(GetParam(), model_->config().vocab_size, 5));
  }

  // Prefill in chunks, then three decode steps: logits of the last prompt row and of the steps.
  RunBits Run(const PrefillOptions& prefill, int64_t chunk) {
    SequenceState state = model_->NewSequence();
    BeginPrompt(state, prefill, static_cast<int64_t>(rows_.size()));
    const auto vocab = static_cast<size_t>(model_->config().vocab_size);
    RunBits bits;
    for (size_t begin = 0; begin < rows_.size(); begin += static_cast<size_t>(chunk)) {
      const size_t count = std::min(static_cast<size_t>(chunk), rows_.size() - begin);
      Forward(state, std::span(rows_).subspan(begin, count), prefill, begin + count == rows_.size(),
              bits.logits);
    }
    bits.state = state.Serialize(model_->identity());
    for (const int32_t token : {5, 6, 7}) {
      const BatchRow row{.token = token, .pos = state.len()};
      Forward(state, {&row, 1}, prefill, true, bits.logits);
    }
    EXPECT_EQ(bits.logits.size(), 4 * vocab);
    return bits;
  }

  void Forward(SequenceState& state, std::span<const BatchRow> rows, const PrefillOptions& prefill,
               bool want_logits, std::vector<float>& logits) {
    const SequenceSlice slice{
        .state = &state, .num_rows = static_cast<int64_t>(rows.size()), .prefill = prefill};
    const auto last = static_cast<int32_t>(rows.size()) - 1;
    const size_t before = logits.size();
    if (want_logits) logits.resize(before + static_cast<size_t>(model_->config().vocab_size));
    ASSERT_TRUE(model_->transformer()
                    .Forward(model_->context(),
                             {.rows = rows,
                              .slices = {&slice, 1},
                              .logit_rows = {&last, want_logits ? size_t{1} : size_t{0}}},
                             {.logits = logits.data() + before})
                    .ok());
  }

  std::unique_ptr<ModelInstance> model_;
  std::vector<BatchRow> rows_;
};

TEST_P(PrefillModesTest, ExactEqualsFullForAnyChunks) {
  const RunBits full = Run(PrefillOptions::Full(), 1000);
  for (const int64_t chunk : {1000, 13, 1}) {
    EXPECT_TRUE(Run({.mode = PrefillMode::kExact}, chunk) == full) << chunk;
  }
}

TEST_P(PrefillModesTest, MaskEqualsCompactForAnyChunks) {
  for (const int64_t keep : {8, 12, 20}) {
    const RunBits compact = Run({.mode = PrefillMode::kCompact, .keep = keep}, 1000);
    for (const int64_t chunk : {1000, 11, 1}) {
      EXPECT_TRUE(Run({.mode = PrefillMode::kCompact, .keep = keep}, chunk) == compact) << chunk;
      EXPECT_TRUE(Run({.mode = PrefillMode::kMask, .keep = keep}, chunk) == compact) << chunk;
    }
  }
}

TEST_P(PrefillModesTest, CompactEqualsFullWhenEveryRowIsKept) {
  const RunBits full = Run(PrefillOptions::Full(), 1000);
  EXPECT_TRUE(Run({.mode = PrefillMode::kCompact, .keep = 1000}, 7) == full);
}

// Window 8: its edges, and those of the exact mode's rows (29, 22, 15, 8).
INSTANTIATE_TEST_SUITE_P(PromptLengths, PrefillModesTest,
                         testing::Values(1, 2, 7, 8, 9, 15, 21, 22, 23, 28, 29, 30, 73));

TEST(PrefillRowsTest, ExactRowsAreThoseOfTheReport) {
  ModelConfig config;
  config.window_size = 128;
  config.num_layers = 40;
  config.kv_source_layers = {2, 8, 14, 20};
  EXPECT_EQ(ExactRows(config, 0), 2541);
  EXPECT_EQ(ExactRows(config, 1), 2414);
  EXPECT_EQ(ExactRows(config, 17), 382);
  EXPECT_EQ(ExactRows(config, 19), 128);
  int64_t row_layers = 0;
  const PrefillOptions exact{.mode = PrefillMode::kExact};
  for (int layer = 20; layer < 40; ++layer) {
    row_layers += 100000 - ComputeFrom(config, exact, 100000, layer);
  }
  EXPECT_EQ(row_layers, 24150);
}

}  // namespace
}  // namespace deepinfer
