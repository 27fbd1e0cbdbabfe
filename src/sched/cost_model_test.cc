#include "sched/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/random_draws.h"

namespace deepinfer {
namespace {

constexpr StepCosts kTruth = {
    .prefill = {.fixed_us = 25'400, .token_us = 310, .context_us = 0.012},
    .decode = {.fixed_us = 61'000, .token_us = 1'900, .context_us = 0.15},
};

double TimeOf(const StepCosts& costs, const StepLoad& load) {
  double us = 0;
  for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
    const PhaseCost& cost = phase == Phase::kPrefill ? costs.prefill : costs.decode;
    if (load[phase].tokens == 0) continue;
    us += cost.fixed_us + cost.token_us * static_cast<double>(load[phase].tokens) +
          cost.context_us * load[phase].context;
  }
  return us;
}

// Decode rows and perhaps a chunk, as steps of a busy engine have them.
StepLoad MixedLoad(RandomDraws& draws) {
  StepLoad load;
  const int64_t decode_rows = draws.Below(17);
  for (int64_t i = 0; i < decode_rows; ++i) load.Add(Phase::kDecode, draws.Below(30'000), 1);
  if (decode_rows == 0 || draws.Uniform() < 0.6) {
    load.Add(Phase::kPrefill, draws.Below(60'000), 1 + draws.Below(2'048));
  }
  return load;
}

void ExpectNear(const PhaseCost& found, const PhaseCost& truth, double relative) {
  EXPECT_NEAR(found.fixed_us, truth.fixed_us, relative * truth.fixed_us);
  EXPECT_NEAR(found.token_us, truth.token_us, relative * truth.token_us);
  EXPECT_NEAR(found.context_us, truth.context_us, relative * truth.context_us);
}

// Root of the mean squared relative error over fresh loads.
double ErrorOf(const CostModel& model, const StepCosts& truth, uint64_t seed) {
  RandomDraws draws(seed);
  double sum = 0;
  constexpr int kLoads = 200;
  for (int i = 0; i < kLoads; ++i) {
    const StepLoad load = MixedLoad(draws);
    const double us = TimeOf(truth, load);
    const double error = model.PredictUs(load) / us - 1;
    sum += error * error;
  }
  return std::sqrt(sum / kLoads);
}

TEST(CostModelTest, ALoadCountsTheContextOfEachRow) {
  StepLoad load;
  load.Add(Phase::kPrefill, 10, 3);  // rows that see 11, 12 and 13 tokens
  load.Add(Phase::kDecode, 99, 1);
  EXPECT_EQ(load[Phase::kPrefill].tokens, 3);
  EXPECT_EQ(load[Phase::kPrefill].context, 36);
  EXPECT_EQ(load[Phase::kDecode].context, 100);
}

TEST(CostModelTest, FindsTheCostsOfAMachineWithoutNoise) {
  CostModel model;
  RandomDraws draws(1);
  for (int i = 0; i < 100; ++i) {
    const StepLoad load = MixedLoad(draws);
    model.Observe(load, TimeOf(kTruth, load));
  }
  ExpectNear(model.costs().prefill, kTruth.prefill, 0.02);
  ExpectNear(model.costs().decode, kTruth.decode, 0.02);
  EXPECT_LT(ErrorOf(model, kTruth, 2), 0.002);
}

TEST(CostModelTest, PredictsWithinThreePercentUnderNoiseAndStalls) {
  for (uint64_t seed = 10; seed < 20; ++seed) {
    CostModel model;
    RandomDraws draws(seed);
    for (int i = 0; i < 400; ++i) {
      const StepLoad load = MixedLoad(draws);
      const double stall = draws.Uniform() < 0.02 ? 5 : 1;
      model.Observe(load, stall * TimeOf(kTruth, load) * std::exp(0.05 * draws.Normal()));
    }
    EXPECT_LT(ErrorOf(model, kTruth, seed + 100), 0.03) << "seed " << seed;
  }
}

TEST(CostModelTest, IsSaneBeforeAnyMeasurement) {
  const CostModel model;
  EXPECT_EQ(model.PredictUs({}), 0);
  StepLoad small;
  small.Add(Phase::kPrefill, 0, 16);
  StepLoad large = small;
  large.Add(Phase::kPrefill, 16, 1'000);
  EXPECT_GT(model.PredictUs(small), 0);
  EXPECT_GT(model.PredictUs(large), model.PredictUs(small));
  EXPECT_EQ(model.MostPrefillTokens({}, 0, 2'048, 0), 0);
  EXPECT_GT(model.MostPrefillTokens({}, 0, 2'048, 1e9), 1'000);
}

TEST(CostModelTest, OneMeasurementScalesEveryGuessToTheMachine) {
  CostModel model;
  const CostModel before;
  StepLoad load;
  load.Add(Phase::kPrefill, 0, 64);
  model.Observe(load, before.PredictUs(load) / 1'000);
  EXPECT_NEAR(model.PredictUs(load), before.PredictUs(load) / 1'000, 1);
  StepLoad decode;
  decode.Add(Phase::kDecode, 64, 1);
  EXPECT_NEAR(model.PredictUs(decode), before.PredictUs(decode) / 1'000, 1);
}

TEST(CostModelTest, NoCostIsEverNegative) {
  for (uint64_t seed = 30; seed < 40; ++seed) {
    CostModel model;
    RandomDraws draws(seed);
    for (int i = 0; i < 300; ++i) {
      // Noise far larger than the parts that it hides.
      const StepLoad load = MixedLoad(draws);
      model.Observe(load, 50'000 * std::exp(1.5 * draws.Normal()));
      for (const PhaseCost& cost : {model.costs().prefill, model.costs().decode}) {
        ASSERT_GE(cost.fixed_us, 0);
        ASSERT_GE(cost.token_us, 0);
        ASSERT_GE(cost.context_us, 0);
        ASSERT_TRUE(std::isfinite(cost.fixed_us + cost.token_us + cost.context_us));
      }
    }
  }
}

TEST(CostModelTest, FollowsAMachineThatBecomesSlower) {
  CostModel model;
  RandomDraws draws(50);
  StepCosts slower = kTruth;
  for (PhaseCost* cost : {&slower.prefill, &slower.decode}) {
    *cost = {.fixed_us = 2 * cost->fixed_us,
             .token_us = 2 * cost->token_us,
             .context_us = 2 * cost->context_us};
  }
  for (int i = 0; i < 500; ++i) {
    const StepLoad load = MixedLoad(draws);
    const StepCosts& truth = i < 200 ? kTruth : slower;
    model.Observe(load, TimeOf(truth, load) * std::exp(0.03 * draws.Normal()));
  }
  EXPECT_LT(ErrorOf(model, slower, 51), 0.03);
}

TEST(CostModelTest, ALongAnswerDoesNotWashOutWhatIsKnownOfPrompts) {
  CostModel model;
  RandomDraws draws(60);
  for (int i = 0; i < 100; ++i) {
    const StepLoad load = MixedLoad(draws);
    model.Observe(load, TimeOf(kTruth, load));
  }
  const PhaseCost known = model.costs().prefill;
  for (int64_t pos = 0; pos < 5'000; ++pos) {
    StepLoad load;
    load.Add(Phase::kDecode, pos, 1);
    model.Observe(load, TimeOf(kTruth, load));
  }
  ExpectNear(model.costs().prefill, known, 0.05);
}

TEST(CostModelTest, AFirstStepThatReadsTheDiskIsSoonForgotten) {
  CostModel model;
  RandomDraws draws(70);
  for (int i = 0; i < 40; ++i) {
    const StepLoad load = MixedLoad(draws);
    model.Observe(load, TimeOf(kTruth, load) * (i == 0 ? 300 : 1));
  }
  EXPECT_LT(ErrorOf(model, kTruth, 71), 0.05);
}

TEST(CostModelTest, IgnoresTimesThatAreNone) {
  CostModel model;
  StepLoad load;
  load.Add(Phase::kDecode, 5, 1);
  for (const double time : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    model.Observe(load, time);
  }
  model.Observe({}, 100);
  EXPECT_EQ(model.num_observed(), 0);
}

TEST(CostModelTest, TheMostPrefillTokensAreTheLastThatFit) {
  const CostModel model(kTruth);
  StepLoad load;
  for (int i = 0; i < 8; ++i) load.Add(Phase::kDecode, 1'000, 1);
  for (const double budget : {90'000.0, 120'000.0, 250'000.0, 5e6}) {
    const int64_t most = model.MostPrefillTokens(load, 3'000, 2'048, budget);
    const auto time = [&](int64_t tokens) {
      StepLoad with = load;
      if (tokens > 0) with.Add(Phase::kPrefill, 3'000, tokens);
      return model.PredictUs(with);
    };
    EXPECT_TRUE(most == 0 || time(most) <= budget) << most;
    EXPECT_TRUE(most == 2'048 || time(most + 1) > budget) << most;
  }
}

}  // namespace
}  // namespace deepinfer
