// A step that is stopped, between two layers or inside one, leaves every sequence as it was.
#include "engine/same_bits.h"
#include "model/prefix_hit.h"

namespace deepinfer {
namespace {

class StopBefore : public LayerObserver {
 public:
  StopBefore(ExecContext& context, int layer) : context_(context), layer_(layer) {
    if (layer == 0) context.RequestStop();
  }
  void OnLayerInput(int layer, int64_t /*rows*/, float* /*h*/, float* /*pre*/) override {
    if (layer + 1 == layer_) context_.RequestStop();
  }

 private:
  ExecContext& context_;
  int layer_;
};

// Stops where the observer is called for the n-th time: inside a layer, between two ops.
class StopAtCall : public LayerObserver {
 public:
  StopAtCall(ExecContext& context, int call) : context_(context), left_(call) {}
  void OnValues(const char* /*name*/, int /*layer*/, int64_t /*rows*/, int64_t /*cols*/,
                const float* /*values*/) override {
    Count();
  }
  void OnIndices(const char* /*name*/, int /*layer*/, int64_t /*rows*/, int64_t /*cols*/,
                 const int32_t* /*values*/) override {
    Count();
  }

 private:
  void Count() {
    if (left_-- == 0) context_.RequestStop();
  }

  ExecContext& context_;
  int left_;
};

// Three sequences at once: in the middle of a compact prompt, decoding with a group open, and
// running behind a prefix hit.
class AbandonedStepTest : public testing::TestWithParam<Numerics> {
 protected:
  void SetUp() override {
    model_ = LoadOrDie({.dir = Path(DEEPINFER_SOURCE_DIR) / "tests/golden/tiny",
                        .numerics = GetParam(),
                        .max_sequences = 8});
    ASSERT_NE(model_, nullptr);
    rows_ = TextRows(RandomTokens(kPrompt, model_->config().vocab_size, 5));
    states_.push_back(model_->NewSequence());
    BeginPrompt(states_[0], kCompact, kPrompt);
    Feed(states_[0], 50, kCompact);
    states_.push_back(model_->NewSequence());
    Feed(states_[1], 37, PrefillOptions::Full());
    states_.push_back(AfterHit());
    for (const SequenceState& state : states_) {
      before_.push_back(state.Serialize(model_->identity()));
    }
    for (size_t i = 0; i < states_.size(); ++i) {
      const auto begin = static_cast<size_t>(states_[i].len());
      batch_.insert(batch_.end(), rows_.begin() + static_cast<ptrdiff_t>(begin),
                    rows_.begin() + static_cast<ptrdiff_t>(begin) + kRows[i]);
    }
    last_ = {kRows[0] + kRows[1] - 1};
  }

  static constexpr int64_t kPrompt = 100;
  static constexpr PrefillOptions kCompact{.mode = PrefillMode::kCompact, .keep = 20};
  static constexpr int kRows[] = {45, 1, 30};

  void Feed(SequenceState& state, int64_t count, const PrefillOptions& prefill) {
    const SequenceSlice slice{.state = &state, .num_rows = count, .prefill = prefill};
    const auto rows = std::span(rows_).first(static_cast<size_t>(count));
    ASSERT_TRUE(model_->transformer()
                    .Forward(model_->context(), {.rows = rows, .slices = {&slice, 1}}, {})
                    .ok());
  }

  SequenceState AfterHit() {
    SequenceState donor = model_->NewSequence();
    Feed(donor, 72, PrefillOptions::Full());
    const std::vector<BlockRef> blocks = donor.ShareBlocks(72);
    const ReplayRecord replay =
        PlanReplay(model_->config(), ReplayRecord::Kind::kExact, 72);  // from position 32
    return model_->NewSequence({.len = 72, .blocks = blocks, .replay = replay}, rows_, kCompact);
  }

  Status Step(std::vector<SequenceState>& states, LayerObserver* observer) {
    std::vector<SequenceSlice> slices;
    for (size_t i = 0; i < states.size(); ++i) {
      slices.push_back({.state = &states[i],
                        .num_rows = kRows[i],
                        .prefill = i == 1 ? PrefillOptions::Full() : kCompact});
    }
    logits_.assign(static_cast<size_t>(model_->config().vocab_size), 0);
    return model_->transformer().Forward(model_->context(),
                                         {.rows = batch_, .slices = slices, .logit_rows = last_},
                                         {.logits = logits_.data()}, observer);
  }

  std::unique_ptr<ModelInstance> model_;
  std::vector<BatchRow> rows_;
  std::vector<SequenceState> states_;
  std::vector<std::string> before_;
  std::vector<BatchRow> batch_;
  std::vector<int32_t> last_;
  std::vector<float> logits_;
};

TEST_P(AbandonedStepTest, LeavesEverySequenceAsItWasWhateverTheLayer) {
  for (int layer = 0; layer < model_->config().num_layers; ++layer) {
    StopBefore stop(model_->context(), layer);
    const Status status = Step(states_, &stop);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), ErrorCode::kCancelled);
    model_->context().ClearStop();
    for (size_t i = 0; i < states_.size(); ++i) {
      EXPECT_TRUE(states_[i].Serialize(model_->identity()) == before_[i]) << layer << " " << i;
      EXPECT_TRUE(states_[i].CheckIntegrity());
    }
  }
}

TEST_P(AbandonedStepTest, LeavesEverySequenceAsItWasWhereverALayerStops) {
  // A step calls the observer about ten times a layer.
  int calls = 0;
  for (;; ++calls) {
    StopAtCall stop(model_->context(), calls);
    const Status status = Step(states_, &stop);
    model_->context().ClearStop();
    if (status.ok()) break;
    EXPECT_EQ(status.code(), ErrorCode::kCancelled);
    for (size_t i = 0; i < states_.size(); ++i) {
      ASSERT_TRUE(states_[i].Serialize(model_->identity()) == before_[i]) << calls << " " << i;
    }
  }
  EXPECT_GT(calls, 8 * model_->config().num_layers);
}

TEST_P(AbandonedStepTest, TheSameStepRunsLaterAsIfNothingHadBeen) {
  std::vector<SequenceState> untouched;
  for (const std::string& bytes : before_) untouched.push_back(*model_->RestoreSequence(bytes));
  ASSERT_TRUE(Step(untouched, nullptr).ok());
  const std::vector<float> expected = logits_;

  for (const int layer : {1, 3, 7}) {
    StopBefore stop(model_->context(), layer);
    ASSERT_FALSE(Step(states_, &stop).ok());
    // The wish to stop stands until it is cleared.
    EXPECT_EQ(Step(states_, nullptr).code(), ErrorCode::kCancelled);
    model_->context().ClearStop();
  }
  ASSERT_TRUE(Step(states_, nullptr).ok());
  EXPECT_TRUE(
      std::ranges::equal(std::as_bytes(std::span(logits_)), std::as_bytes(std::span(expected))));
  for (size_t i = 0; i < states_.size(); ++i) {
    EXPECT_TRUE(states_[i].Serialize(model_->identity()) ==
                untouched[i].Serialize(model_->identity()))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(BothNumerics, AbandonedStepTest,
                         testing::Values(Numerics::kRelease, Numerics::kFp32),
                         [](const auto& tested) {
                           return tested.param == Numerics::kRelease ? "Release" : "Fp32";
                         });

}  // namespace
}  // namespace deepinfer
