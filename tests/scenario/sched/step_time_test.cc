// Steps against a time budget, on a simulated machine whose speed the scheduler has to find out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scenario/sched/simulated_engine.h"
#include "tests/support/random_draws.h"

namespace deepinfer {
namespace {

constexpr int64_t kBudgetUs = 250'000;

// What a machine might cost, from a large server to a small one.
StepCosts Machine(int index) {
  const double slower = std::vector<double>{1, 3, 10}[static_cast<size_t>(index)];
  return {.prefill = {.fixed_us = 4'000 * slower,
                      .token_us = 150 * slower,
                      .context_us = 0.004 * slower},
          .decode = {
              .fixed_us = 5'000 * slower, .token_us = 400 * slower, .context_us = 0.02 * slower}};
}

struct StepTimes {
  std::vector<double> all_us;
  std::vector<double> full_us;  // of steps that time alone cut
};

// Requests of all lengths come and go; the last half of the steps counts.
StepTimes RunMixedLoad(const StepCosts& truth, uint64_t seed, double noise) {
  RandomDraws draws(seed);
  SimulatedEngine engine({.max_num_seqs = 16,
                          .max_num_batched_tokens = 2'048,
                          .step_time_budget_us = kBudgetUs,
                          .num_blocks = 20'000,
                          .block_bytes = 1},
                         truth, kUnmeasuredCosts);
  engine.noise = [&](double us) {
    return us * std::exp(noise * draws.Normal()) * (draws.Chance(0.01) ? 3 : 1);
  };
  StepTimes times;
  RequestId last_id = 0;
  constexpr int kSteps = 1'500;
  for (int step = 0; step < kSteps; ++step) {
    const bool busy = step / 100 % 2 == 0;  // prompts come in waves
    while (std::ssize(engine.requests) < (busy ? 20 : 6)) {
      const int64_t prompt_len = 1 + draws.Below(draws.Chance(0.2) ? 30'000 : 1'500);
      EXPECT_TRUE(
          engine
              .Add({.id = ++last_id, .prompt_len = prompt_len, .max_tokens = 1 + draws.Below(200)})
              .ok());
    }
    const StepPlan& plan = engine.Plan();
    const int64_t prompt_rows = plan.load[Phase::kPrefill].tokens;
    const bool full = prompt_rows > 64 && plan.predicted_us > 0.98 * kBudgetUs;
    engine.Advance();
    if (step < kSteps / 2) continue;
    times.all_us.push_back(static_cast<double>(engine.elapsed_us));
    if (full) times.full_us.push_back(static_cast<double>(engine.elapsed_us));
  }
  EXPECT_THAT(engine.violations, testing::IsEmpty());
  return times;
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

class StepTimeTest : public testing::TestWithParam<int> {};

TEST_P(StepTimeTest, NineteenOfTwentyStepsStayNearTheBudgetAndUseIt) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const StepTimes times = RunMixedLoad(Machine(GetParam()), seed, 0.05);
    EXPECT_LE(Quantile(times.all_us, 0.95), 1.15 * kBudgetUs) << "seed " << seed;
    ASSERT_GT(times.full_us.size(), 100U) << "seed " << seed;
    EXPECT_LE(Quantile(times.full_us, 0.95), 1.15 * kBudgetUs) << "seed " << seed;
    EXPECT_GE(Quantile(times.full_us, 0.5), 0.95 * kBudgetUs) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, StepTimeTest, testing::Range(0, 3));

}  // namespace
}  // namespace deepinfer
