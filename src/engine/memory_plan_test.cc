#include "engine/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/same_bits.h"

namespace deepinfer {
namespace {

using testing::HasSubstr;

constexpr int64_t kGb = 1'000'000'000;
constexpr int64_t kMb = 1'000'000;
constexpr int64_t kEntry = 32;  // of a block, in tables

// Round figures near those of the released model.
MemorySizes Sizes() {
  return {.process = 100 * kMb,
          .dense = 10 * kGb,
          .experts = 480 * kGb,
          .tables = 4 * kGb,
          .sequence = 5 * kMb,
          .set_aside = 3 * kMb,
          .block = 100'000 - kEntry,
          .longest = 1 << 20,
          .step = [](const StepShape& shape) { return shape.rows * 350'000; }};
}

MemoryPlan PlanOf(const MemoryRequest& request) {
  const MemorySizes sizes = Sizes();
  Result<MemoryPlan> plan = PlanMemory(sizes, request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : MemoryPlan{};
}

Status RefusalOf(const MemoryRequest& request) {
  const MemorySizes sizes = Sizes();
  return PlanMemory(sizes, request).status();
}

TEST(MemoryPlanTest, EveryPartIsCountedAndTheRestHoldsExperts) {
  const MemoryPlan plan = PlanOf({.budget = 24 * kGb, .max_model_len = 12'800, .max_sequences = 2});
  EXPECT_EQ(plan.max_batch_rows, kMaxBatchRows);
  EXPECT_EQ(plan.step, kMaxBatchRows * 350'000);
  EXPECT_EQ(plan.sequences, 10 * kMb);
  EXPECT_EQ(plan.num_blocks, 2 * 101);
  EXPECT_EQ(plan.kv_cache, 2 * 101 * 100'000);
  EXPECT_NEAR(static_cast<double>(plan.set_aside), 3e6 + 100 * 1e5, 1e4);  // one of two
  EXPECT_EQ(plan.resident(), plan.budget);
  EXPECT_EQ(plan.experts_resident, plan.budget - plan.dense - plan.anonymous());
  EXPECT_EQ(plan.tables_resident, 0);
}

TEST(MemoryPlanTest, WhatFitsWholeLeavesRoom) {
  const MemoryPlan plan =
      PlanOf({.budget = 600 * kGb, .max_model_len = 12'800, .max_sequences = 1});
  EXPECT_EQ(plan.experts_resident, plan.experts);
  EXPECT_EQ(plan.tables_resident, plan.tables);
  EXPECT_LT(plan.resident(), plan.budget);
  EXPECT_EQ(plan.set_aside, 0);  // nobody to make room for
}

TEST(MemoryPlanTest, ALengthThatNobodyAskedForIsWhatFits) {
  const MemoryPlan plan = PlanOf({.budget = 12 * kGb, .max_sequences = 1});
  // 0.1 + 0.72 + 10 GB are taken; half of the rest.
  EXPECT_NEAR(static_cast<double>(plan.kv_cache), 0.59e9, 0.01e9);
  EXPECT_EQ(plan.max_model_len, (plan.num_blocks - 1) * kBlockTokens);
  EXPECT_EQ(PlanOf({.budget = 64 * kGb, .max_sequences = 1}).max_model_len, 1 << 20);
}

TEST(MemoryPlanTest, ALengthThatWasAskedForMayTakeWhatExpertsWouldHave) {
  const MemoryPlan plan =
      PlanOf({.budget = 12 * kGb, .max_model_len = 1'280'000 / 128 * 100, .max_sequences = 8});
  EXPECT_EQ(plan.max_model_len, 1'000'000);
  EXPECT_EQ(plan.num_blocks, 7814);  // one sequence, not eight
}

TEST(MemoryPlanTest, KvCacheMemoryIsSetApart) {
  const MemoryPlan plan = PlanOf(
      {.budget = 24 * kGb, .kv_cache = 2 * kGb, .max_model_len = 12'800, .max_sequences = 2});
  EXPECT_EQ(plan.num_blocks, 20'000);
  EXPECT_EQ(plan.kv_cache, 2 * kGb);
}

TEST(MemoryPlanTest, SequencesInFlightFollowFromTheMemory) {
  EXPECT_EQ(PlanOf({.budget = 24 * kGb}).max_sequences, kMaxDerivedSequences);
  const MemoryPlan small = PlanOf({.budget = 10 * kGb + 900 * kMb});
  EXPECT_EQ(small.max_sequences, 20);  // an eighth of 800 MB
}

TEST(MemoryPlanTest, StepsBecomeSmallerBeforeABudgetIsRefused) {
  const MemoryPlan plan =
      PlanOf({.budget = 10 * kGb + 300 * kMb, .max_model_len = 1024, .max_sequences = 1});
  EXPECT_EQ(plan.max_batch_rows, 512);
  EXPECT_LE(plan.resident(), plan.budget);
  const Status asked = RefusalOf({.budget = 10 * kGb + 300 * kMb,
                                  .max_model_len = 1024,
                                  .max_sequences = 1,
                                  .max_batch_rows = 2048});
  EXPECT_EQ(asked.code(), ErrorCode::kResourceExhausted);
}

TEST(MemoryPlanTest, ABudgetThatIsTooSmallIsToldWhatIsNeededAndWhatChangesIt) {
  const Status status = RefusalOf({.budget = 8 * kGb, .max_model_len = 1280, .max_sequences = 1});
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "memory: found a budget of 8.00 GB, expected at least 10.2 GB: 10.0 GB for weights that "
      "every token reads, 44.8 MB for a step of 128 rows, 5.00 MB for 1 sequence(s), 1.10 MB "
      "for KV blocks, 100 MB for the process; raise --memory, or lower --max-model-len or "
      "--max-num-seqs");
  EXPECT_THAT(RefusalOf({.budget = 11 * kGb, .kv_cache = 3 * kGb, .max_sequences = 1}).message(),
              HasSubstr("or lower --kv-cache-memory"));
  EXPECT_EQ(
      RefusalOf({.budget = 24 * kGb, .kv_cache = kMb, .max_model_len = 12'800, .max_sequences = 1})
          .message(),
      "--kv-cache-memory: found 1.00 MB, expected at least 10.1 MB for one sequence of 12800 "
      "tokens");
  EXPECT_EQ(RefusalOf({.budget = 24 * kGb, .max_model_len = 2 << 20}).message(),
            "--max-model-len: found 2097152, expected 1 to 1048576");
}

TEST(MemoryPlanTest, NoPlanIsLargerThanItsBudget) {
  for (uint32_t i = 0; i < 2000; ++i) {
    const PhiloxBlock random = Philox(5, {i, 0, 0, 0});
    const MemoryRequest request{.budget = 10 * kGb + int64_t{random[0]} * 4,
                                .kv_cache = i % 3 == 0 ? 1 + int64_t{random[1]} / 2 : 0,
                                .max_model_len = i % 2 == 0 ? 1 + random[2] % (1 << 20) : 0,
                                .max_sequences = i % 5 == 0 ? 0 : 1 + random[3] % 100};
    const MemorySizes sizes = Sizes();
    const Result<MemoryPlan> plan = PlanMemory(sizes, request);
    if (!plan.ok()) {
      EXPECT_EQ(plan.status().code(), ErrorCode::kResourceExhausted);
      continue;
    }
    EXPECT_LE(plan->resident(), plan->budget) << i;
    EXPECT_GE(plan->set_aside, 0) << i;
    EXPECT_GE(plan->experts_resident, 0) << i;
    EXPECT_GE(plan->num_blocks * kBlockTokens, plan->max_model_len + kBlockTokens) << i;
  }
}

struct ScratchCase {
  const char* dir;
  Numerics numerics;
};

void PrintTo(const ScratchCase& tested, std::ostream* out) { *out << tested.dir; }

class StepScratchTest : public testing::TestWithParam<ScratchCase> {};

// Prompts of growing length in one step each: the scratch arena's high-water mark is the formula.
TEST_P(StepScratchTest, TheFormulaIsWhatAStepTakes) {
  const std::unique_ptr<ModelInstance> model =
      LoadOrDie({.dir = Path(DEEPINFER_SOURCE_DIR) / GetParam().dir,
                 .numerics = GetParam().numerics,
                 .threads = 2});
  ASSERT_NE(model, nullptr);
  ExecContext& context = model->context();
  std::vector<float> logits(static_cast<size_t>(model->config().vocab_size));
  for (const int64_t rows : {1, 3, 40, 250, 300, 600}) {
    if (rows > model->max_model_len()) break;
    const std::vector<BatchRow> prompt =
        TextRows(RandomTokens(rows, model->config().vocab_size, 1));
    SequenceState state = model->NewSequence();
    const SequenceSlice slice{.state = &state, .num_rows = rows};
    const auto last = static_cast<int32_t>(rows - 1);
    ASSERT_TRUE(model->transformer()
                    .Forward(context,
                             {.rows = prompt, .slices = {&slice, 1}, .logit_rows = {&last, 1}},
                             {.logits = logits.data()})
                    .ok());
    const auto planned = static_cast<double>(
        StepScratchBytes(model->config(), model->layout(),
                         {.rows = rows, .sequences = 1, .max_len = rows, .threads = 2}));
    const auto taken = static_cast<double>(context.scratch().peak());
    // 64-byte alignment of some eighty arrays.
    EXPECT_LE(taken, planned + 64 * 80) << rows;
    EXPECT_GE(taken, planned * 0.95 - 1024) << rows;
  }
  EXPECT_EQ(context.scratch().capacity(),
            static_cast<size_t>(StepScratchBytes(model->config(), model->layout(),
                                                 {.rows = model->max_batch_rows(),
                                                  .sequences = 1,
                                                  .max_len = model->max_model_len(),
                                                  .threads = 2}) +
                                63) /
                64 * 64);
}

INSTANTIATE_TEST_SUITE_P(Models, StepScratchTest,
                         testing::Values(ScratchCase{"models/nano", Numerics::kRelease},
                                         ScratchCase{"models/nano", Numerics::kFp32},
                                         ScratchCase{"tests/golden/tiny", Numerics::kRelease}),
                         [](const auto& tested) {
                           const std::string dir = tested.param.dir;
                           return dir.substr(dir.rfind('/') + 1) +
                                  (tested.param.numerics == Numerics::kFp32 ? "Fp32" : "");
                         });

TEST(ModelMemoryTest, ABudgetShapesTheModelOrRefusesIt) {
  const Path nano = Path(DEEPINFER_SOURCE_DIR) / "models/nano";
  const std::unique_ptr<ModelInstance> model =
      LoadOrDie({.dir = nano, .memory = 200 * kMb, .kv_cache_memory = kMb, .max_sequences = 4});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->pool().num_blocks(), model->memory_plan().num_blocks);
  EXPECT_EQ(model->max_model_len(), (model->pool().num_blocks() - 1) * kBlockTokens);
  EXPECT_EQ(model->set_aside().capacity(), model->memory_plan().set_aside);
  const Result<std::unique_ptr<ModelInstance>> refused =
      ModelInstance::Load({.dir = nano, .memory = 5 * kMb});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("memory: found a budget of 5.00 MB"));
}

}  // namespace
}  // namespace deepinfer
