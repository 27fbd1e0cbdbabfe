#include "engine/same_bits.h"

#include "kernels/kernels.h"
#include "kernels/select.h"

namespace deepinfer {
namespace {

struct Checkpoint {
  const char* name;
  const char* config;   // folder under the source tree
  const char* weights;  // the same, or another one
  int64_t tokens;
};

// Other head counts, ratios, windows, block sizes and expert counts in each.
class SameBitsTest : public testing::TestWithParam<std::tuple<Checkpoint, Numerics>> {
 protected:
  void SetUp() override {
    const auto& [checkpoint, numerics] = GetParam();
    const Path root = DEEPINFER_SOURCE_DIR;
    model_ = LoadOrDie({.dir = root / checkpoint.config,
                        .weights_dir = root / checkpoint.weights,
                        .numerics = numerics,
                        .max_sequences = 4});
    ASSERT_NE(model_, nullptr);
    rows_ = TextRows(RandomTokens(checkpoint.tokens, model_->config().vocab_size, 17));
  }

  std::unique_ptr<ModelInstance> model_;
  std::vector<BatchRow> rows_;
};

TEST_P(SameBitsTest, WholePrefillEqualsChunksEqualsTokenByToken) {
  const RunBits whole = RunInChunks(*model_, rows_, static_cast<int64_t>(rows_.size()));
  EXPECT_TRUE(RunInChunks(*model_, rows_, 1) == whole);
  EXPECT_TRUE(RunInChunks(*model_, rows_, 5) == whole);
  EXPECT_TRUE(RunInChunks(*model_, rows_, 37) == whole);
}

TEST_P(SameBitsTest, ASequenceBesideOthersEqualsItAlone) {
  const std::vector<BatchRow> others = TextRows(RandomTokens(11, model_->config().vocab_size, 23));
  const RunBits alone = RunInChunks(*model_, rows_, static_cast<int64_t>(rows_.size()));

  SequenceState first = model_->NewSequence();
  SequenceState second = model_->NewSequence();
  std::vector<BatchRow> batch = others;
  batch.insert(batch.end(), rows_.begin(), rows_.end());
  const SequenceSlice slices[] = {
      {.state = &first, .num_rows = 11},
      {.state = &second, .num_rows = static_cast<int64_t>(rows_.size())}};
  const auto last = static_cast<int32_t>(batch.size()) - 1;
  const auto vocab = static_cast<size_t>(model_->config().vocab_size);
  std::vector<float> logits(vocab);
  ASSERT_TRUE(model_->transformer()
                  .Forward(model_->context(),
                           {.rows = batch, .slices = slices, .logit_rows = {&last, 1}},
                           {.logits = logits.data()})
                  .ok());
  EXPECT_TRUE(second.Serialize(model_->identity()) == alone.state);
  EXPECT_EQ(std::memcmp(logits.data(), alone.logits.data() + alone.logits.size() - vocab,
                        vocab * sizeof(float)),
            0);
}

TEST_P(SameBitsTest, AStoppedStepLeavesTheStateAsItWas) {
  class StopAtLayer : public LayerObserver {
   public:
    explicit StopAtLayer(ExecContext& context) : context_(context) {}
    void OnLayerInput(int layer, int64_t /*rows*/, float* /*h*/, float* /*pre*/) override {
      if (layer == 2) context_.RequestStop();
    }

   private:
    ExecContext& context_;
  };
  SequenceState state = model_->NewSequence();
  const std::span<const BatchRow> rows(rows_);
  const SequenceSlice head{.state = &state, .num_rows = 20};
  ASSERT_TRUE(model_->transformer()
                  .Forward(model_->context(), {.rows = rows.first(20), .slices = {&head, 1}}, {})
                  .ok());
  const std::string before = state.Serialize(model_->identity());
  StopAtLayer stop(model_->context());
  const SequenceSlice tail{.state = &state, .num_rows = 15};
  const Status status = model_->transformer().Forward(
      model_->context(), {.rows = rows.subspan(20, 15), .slices = {&tail, 1}}, {}, &stop);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kCancelled);
  model_->context().ClearStop();
  EXPECT_TRUE(state.Serialize(model_->identity()) == before);
}

TEST_P(SameBitsTest, RolledBackAndForkedStatesContinueWithTheSameBits) {
  SequenceState state = model_->NewSequence();
  const std::span<const BatchRow> rows(rows_);
  const auto forward = [&](SequenceState& s, std::span<const BatchRow> part) {
    const SequenceSlice slice{.state = &s, .num_rows = static_cast<int64_t>(part.size())};
    ASSERT_TRUE(model_->transformer()
                    .Forward(model_->context(), {.rows = part, .slices = {&slice, 1}}, {})
                    .ok());
  };
  forward(state, rows.first(21));
  SequenceState fork = state.Fork();
  // Other tokens take the place of the next 16, then are forgotten.
  std::vector<BatchRow> wrong = TextRows(RandomTokens(37, model_->config().vocab_size, 99));
  forward(state, std::span(wrong).subspan(21, 16));
  state.Rollback(16);
  forward(state, rows.subspan(21, 14));
  forward(fork, rows.subspan(21, 14));
  const RunBits straight = RunInChunks(*model_, rows.first(35), 35);
  EXPECT_TRUE(fork.Serialize(model_->identity()) == straight.state);
  EXPECT_TRUE(state.Serialize(model_->identity()) == straight.state);
}

TEST_P(SameBitsTest, EveryInstructionSetAndThreadCountGivesTheSameBits) {
  const auto& [checkpoint, numerics] = GetParam();
  const Path root = DEEPINFER_SOURCE_DIR;
  const std::span<const BatchRow> rows = std::span(rows_).first(45);
  const RunBits expected = RunInChunks(*model_, rows, 45);
  for (const KernelTable* kernels : SupportedKernels()) {
    for (const int threads : {1, 3}) {
      const std::unique_ptr<ModelInstance> model =
          LoadOrDie({.dir = root / checkpoint.config,
                     .weights_dir = root / checkpoint.weights,
                     .numerics = numerics,
                     .isa = kernels->name,
                     .threads = threads});
      ASSERT_NE(model, nullptr);
      EXPECT_TRUE(RunInChunks(*model, rows, 45) == expected) << kernels->name << " " << threads;
      EXPECT_TRUE(RunInChunks(*model, rows, 2) == expected) << kernels->name << " " << threads;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllCheckpoints, SameBitsTest,
    testing::Combine(
        testing::Values(Checkpoint{"tiny", "tests/golden/tiny", "tests/golden/tiny", 60},
                        Checkpoint{"wide", "tests/golden/wide", "tests/golden/tiny", 150},
                        Checkpoint{"nano", "models/nano", "models/nano", 150}),
        testing::Values(Numerics::kRelease, Numerics::kFp32)),
    [](const auto& tested) {
      return std::string(std::get<0>(tested.param).name) +
             (std::get<1>(tested.param) == Numerics::kRelease ? "Release" : "Fp32");
    });

}  // namespace
}  // namespace deepinfer
