// Thousands of random operations against the books of SimulatedEngine, which holds every plan
// against what plans must keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scenario/sched/simulated_engine.h"
#include "tests/support/random_draws.h"

namespace deepinfer {
namespace {

constexpr int kOperations = 2'500;
constexpr int64_t kMostAlive = 24;
constexpr int64_t kPriorities = 3;
constexpr StepCosts kTruth = {
    .prefill = {.fixed_us = 4'000, .token_us = 900, .context_us = 0.5},
    .decode = {.fixed_us = 9'000, .token_us = 1'500, .context_us = 2},
};

SchedulerLimits RandomLimits(RandomDraws& draws) {
  return {.max_num_seqs = 1 + draws.Below(12),
          .max_num_batched_tokens = 1 + draws.Below(300),
          .max_chunk = draws.Chance(0.3) ? 1 + draws.Below(100) : 32'768,
          .step_time_budget_us = draws.Chance(0.6) ? 5'000 + draws.Below(200'000) : 0,
          .aging_us = 100'000 + draws.Below(3'000'000),
          .block_tokens = 16,
          .num_blocks = 30 + draws.Below(100),
          .block_bytes = 1};
}

class RandomOperations {
 public:
  explicit RandomOperations(uint64_t seed)
      : draws_(seed), engine_(RandomLimits(draws_), kTruth, kUnmeasuredCosts) {
    engine_.noise = [this](double us) { return us * std::exp(0.1 * draws_.Normal()); };
  }

  void Run() {
    for (int i = 0; i < kOperations && engine_.violations.empty(); ++i) Operation();
    engine_.outside_blocks = 0;
    for (const auto& [id, request] : engine_.requests) engine_.SetPaused(id, false);
    for (int i = 0; i < 20'000 && !engine_.requests.empty() && engine_.violations.empty(); ++i) {
      Step();
    }
  }

  void Check() const {
    EXPECT_THAT(engine_.violations, testing::IsEmpty());
    EXPECT_TRUE(engine_.requests.empty()) << engine_.requests.size() << " never ended";
    EXPECT_TRUE(engine_.scheduler.idle());
    EXPECT_EQ(std::ssize(engine_.ends), num_accepted_);
    EXPECT_EQ(engine_.free_blocks(), engine_.scheduler.limits().num_blocks);
  }

  // Of any request for its next row, or for its first.
  int64_t longest_wait_us() const { return longest_wait_us_; }
  // Until it is the most urgent of all, and then until a place is free: the longest answer has 80
  // tokens, and a step takes less than a second.
  int64_t MostWaitUs() const {
    return (kPriorities + 1) * engine_.scheduler.limits().aging_us + 80'000'000;
  }

 private:
  void Operation() {
    const double kind = draws_.Uniform();
    if (kind < 0.2) {
      Add();
    } else if (kind < 0.24) {
      engine_.Cancel(AnyRequest());
    } else if (kind < 0.27) {
      // Somebody else takes or gives blocks back, but only free ones.
      const int64_t most = engine_.free_blocks() + engine_.outside_blocks;
      engine_.outside_blocks = draws_.Below(std::max<int64_t>(1, most / 2));
    } else if (kind < 0.3) {
      const int64_t used = engine_.set_aside_blocks - engine_.set_aside_left();
      engine_.set_aside_blocks = used + (draws_.Chance(0.5) ? 1'000 : draws_.Below(20));
    } else if (kind < 0.34) {
      engine_.SetPaused(AnyRequest(), draws_.Chance(0.3));
    } else if (kind < 0.36) {
      engine_.now_us += draws_.Below(200'000);
    } else {
      Step();
    }
  }

  void Add() {
    if (std::ssize(engine_.requests) >= kMostAlive) return;
    RequestFacts facts{.id = ++last_id_,
                       .prompt_len = 1 + draws_.Below(draws_.Chance(0.2) ? 600 : 60),
                       .max_tokens = 1 + draws_.Below(80),
                       .priority = static_cast<int>(draws_.Below(kPriorities))};
    if (draws_.Chance(0.2)) facts.max_chunk = 1 + draws_.Below(40);
    if (draws_.Chance(0.15)) facts.deadline_us = engine_.now_us + draws_.Below(2'000'000);
    // What a cache holds takes blocks of the pool.
    const int64_t most = std::min(facts.prompt_len - 1, engine_.free_blocks() * 16 / 2);
    if (draws_.Chance(0.3) && most > 0) {
      facts.num_cached_tokens = draws_.Below(most + 1);
      facts.may_recompute = draws_.Chance(0.5);
      facts.computed_len =
          facts.may_recompute ? facts.num_cached_tokens : draws_.Below(facts.num_cached_tokens + 1);
    }
    const Status status = engine_.Add(facts, 1 + draws_.Below(facts.max_tokens));
    num_accepted_ += status.ok() ? 1 : 0;
  }

  // One that has not ended; 0: there is none.
  RequestId AnyRequest() {
    if (engine_.requests.empty()) return 0;
    auto request = engine_.requests.begin();
    std::advance(request, draws_.Below(std::ssize(engine_.requests)));
    return request->first;
  }

  void Step() {
    engine_.Plan();
    if (draws_.Chance(0.03)) engine_.Cancel(AnyRequest());  // while its rows are computed
    if (draws_.Chance(0.03)) return engine_.plan.Clear();   // the step was stopped
    engine_.Advance();
    for (const auto& [id, request] : engine_.requests) {
      if (request.paused) continue;
      const int64_t since = std::max(request.last_served_us, request.facts.arrival_us);
      longest_wait_us_ = std::max(longest_wait_us_, engine_.now_us - since);
    }
  }

  RandomDraws draws_;
  SimulatedEngine engine_;
  RequestId last_id_ = 0;
  int64_t num_accepted_ = 0;
  int64_t longest_wait_us_ = 0;
};

class RandomOperationsTest : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomOperationsTest, EveryRequestEndsOnceAndNoPlanBreaksItsBounds) {
  RandomOperations operations(GetParam());
  operations.Run();
  operations.Check();
  EXPECT_LE(operations.longest_wait_us(), operations.MostWaitUs());
}

// A long prompt of the lowest priority beside an endless stream of short ones of a higher priority
// that would fill every place and step.
TEST_P(RandomOperationsTest, ARequestGoesOnUnderAnEndlessStreamOfMoreUrgentOnes) {
  RandomDraws draws(GetParam());
  const SchedulerLimits limits{.max_num_seqs = 1 + draws.Below(4),
                               .max_num_batched_tokens = 50,
                               .step_time_budget_us = draws.Chance(0.5) ? 60'000 : 0,
                               .aging_us = 1'000'000,
                               .block_tokens = 16,
                               .num_blocks = 40 + draws.Below(40),
                               .block_bytes = 1};
  SimulatedEngine engine(limits, kTruth, kUnmeasuredCosts);
  engine.set_aside_blocks = draws.Chance(0.8) ? 1'000 : 0;
  ASSERT_TRUE(engine.Add({.id = 1, .prompt_len = 400, .max_tokens = 30}).ok());
  RequestId last_id = 1;
  int64_t longest_wait_us = 0;
  while (engine.requests.contains(1) && last_id < 20'000) {
    while (std::ssize(engine.requests) < 2 * limits.max_num_seqs + 3) {
      ASSERT_TRUE(engine
                      .Add({.id = ++last_id,
                            .prompt_len = 30 + draws.Below(20),
                            .max_tokens = 1 + draws.Below(20),
                            .priority = 2})
                      .ok());
    }
    const int64_t waited = engine.now_us - engine.requests.at(1).last_served_us;
    longest_wait_us = std::max(longest_wait_us, waited);
    engine.Plan();
    engine.Advance();
  }
  EXPECT_THAT(engine.violations, testing::IsEmpty());
  EXPECT_EQ(engine.ends[1], SimulatedEnd::kFinished);
  // Two priorities below, so the third second makes it the most urgent; then a place is soon free.
  EXPECT_LE(longest_wait_us, 4 * limits.aging_us);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomOperationsTest, testing::Range<uint64_t>(0, 40));

}  // namespace
}  // namespace deepinfer
