// A step of the network allocates nothing once the buffers have grown to its size.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/generator.h"
#include "engine/model_instance.h"
#include "kernels/select.h"
#include "tests/allocations/allocation_count.h"

namespace deepinfer {
namespace {

struct ModelCase {
  std::string dir;  // below the source directory
  std::string isa;
};

class StepAllocationsTest : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<ModelInstance>> model =
        ModelInstance::Load({.dir = Path(DEEPINFER_SOURCE_DIR) / GetParam().dir,
                             .isa = GetParam().isa,
                             .threads = 3,
                             .max_sequences = kSequences});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    for (int s = 0; s < kSequences; ++s) states_.push_back(model_->NewSequence());
    logits_.resize(kSequences * static_cast<size_t>(model_->config().vocab_size));
  }

  // `rows` more tokens of every sequence; logits of the last of each.
  Status Step(int64_t rows, const PrefillOptions& prefill = PrefillOptions::Full()) {
    slices_.clear();
    rows_.clear();
    wanted_.clear();
    for (SequenceState& state : states_) {
      slices_.push_back({.state = &state, .num_rows = rows, .prefill = prefill});
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t pos = state.len() + i;
        const auto token = static_cast<int32_t>(pos * 37 % model_->config().vocab_size);
        rows_.push_back({.token = token, .pos = pos});
      }
      wanted_.push_back(static_cast<int32_t>(rows_.size()) - 1);
    }
    return model_->transformer().Forward(model_->context(),
                                         {.rows = rows_, .slices = slices_, .logit_rows = wanted_},
                                         {.logits = logits_.data()});
  }

  // What a second run of the same steps allocates.
  int64_t CountSteps(int64_t rows, int steps) {
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(Step(rows).ok());
    const int64_t before = AllocationCount();
    const size_t scratch = model_->context().scratch().capacity();
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(Step(rows).ok());
    EXPECT_EQ(model_->context().scratch().capacity(), scratch);
    return AllocationCount() - before;
  }

  static constexpr int kSequences = 3;
  std::unique_ptr<ModelInstance> model_;
  std::vector<SequenceState> states_;
  std::vector<SequenceSlice> slices_;
  std::vector<BatchRow> rows_;
  std::vector<int32_t> wanted_;
  std::vector<float> logits_;
};

TEST_P(StepAllocationsTest, TheCounterSeesAnAllocation) {
  const int64_t before = AllocationCount();
  const std::vector<int> some(100);
  EXPECT_GT(AllocationCount(), before);
  EXPECT_EQ(some.size(), 100U);
}

// Long enough to pass from one 128-token block into the next.
TEST_P(StepAllocationsTest, DecodeStepsAllocateNothing) { EXPECT_EQ(CountSteps(1, 120), 0); }

TEST_P(StepAllocationsTest, PrefillChunksAllocateNothing) { EXPECT_EQ(CountSteps(40, 3), 0); }

std::vector<ModelCase> ModelCases() {
  std::vector<ModelCase> cases;
  for (const KernelTable* table : SupportedKernels()) {
    for (const char* dir : {"tests/golden/tiny", "models/nano"})
      cases.push_back({dir, table->name});
  }
  return cases;
}

std::string CaseName(const testing::TestParamInfo<ModelCase>& param) {
  return param.param.isa + (param.param.dir == "models/nano" ? "Nano" : "Tiny");
}

INSTANTIATE_TEST_SUITE_P(Models, StepAllocationsTest, testing::ValuesIn(ModelCases()), CaseName);

}  // namespace
}  // namespace deepinfer
