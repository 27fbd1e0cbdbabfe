#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/random.h"
#include "io/file.h"
#include "sampling/penalties.h"

namespace deepinfer {
namespace {

std::vector<float> LogitsOf(std::initializer_list<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::map<int32_t, int> Draw(const std::vector<float>& logits, const SamplingParams& params,
                            int draws) {
  Sampler sampler(static_cast<int64_t>(logits.size()));
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    ++counts[sampler.Choose(logits, params, {.seed = 7, .choice = 0, .position = i}).value()];
  }
  return counts;
}

TEST(SamplerTest, GreedyTakesTheLowestIdAmongEqualLogits) {
  const std::vector<float> logits = {1, 3, 3, 2};
  Sampler sampler(4);
  EXPECT_EQ(sampler.Choose(logits, {.temperature = 0}, {.seed = 1}), 1);
}

TEST(SamplerTest, FrequenciesFollowTheDistribution) {
  const std::map<int32_t, int> counts = Draw(LogitsOf({0.5, 0.3, 0.2}), {}, 20000);
  EXPECT_NEAR(counts.at(0) / 20000.0, 0.5, 0.015);
  EXPECT_NEAR(counts.at(1) / 20000.0, 0.3, 0.015);
  EXPECT_NEAR(counts.at(2) / 20000.0, 0.2, 0.015);
}

TEST(SamplerTest, TemperatureSharpensTheDistribution) {
  const std::map<int32_t, int> counts =
      Draw(LogitsOf({0.5, 0.3, 0.2}), {.temperature = 0.5}, 20000);
  EXPECT_NEAR(counts.at(0) / 20000.0, 0.25 / (0.25 + 0.09 + 0.04), 0.015);
}

TEST(SamplerTest, TopKTopPAndMinPKeepOnlyTheirSets) {
  const std::vector<float> logits = LogitsOf({0.1, 0.4, 0.3, 0.2});
  EXPECT_EQ(Draw(logits, {.top_k = 1}, 50).size(), 1u);
  EXPECT_EQ(Draw(logits, {.top_k = 2}, 500).size(), 2u);
  EXPECT_EQ(Draw(logits, {.top_p = 0.65}, 500).size(), 2u);
  EXPECT_EQ(Draw(logits, {.top_p = 0.75}, 500).size(), 3u);
  EXPECT_EQ(Draw(logits, {.min_p = 0.6}, 500).size(), 2u);
  EXPECT_EQ(Draw(logits, {.top_p = 1e-9}, 50).size(), 1u);
}

TEST(SamplerTest, TopPBeyondTheFirstSortedPartKeepsTheRightCount) {
  std::vector<float> logits(1000, 0.0f);
  Sampler sampler(1000);
  std::map<int32_t, int> counts = Draw(logits, {.top_p = 0.5}, 20000);
  EXPECT_EQ(counts.size(), 500u);
  EXPECT_EQ(counts.rbegin()->first, 499);
}

// The race over the top-p set of a plain sort.
int32_t ChooseBySorting(const std::vector<float>& logits, double top_p, const RaceKey& key) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  const auto weight = [&](int32_t id) {
    return std::exp(static_cast<double>(logits[static_cast<size_t>(id)]));
  };
  double total = 0;
  for (const int32_t id : ids) total += weight(id);
  double sum = 0;
  int32_t winner = -1;
  double best = -1;
  for (const int32_t id : ids) {
    const double score = weight(id) / RaceNoise(key.seed, key.choice, key.position, id);
    if (score > best) {
      best = score;
      winner = id;
    }
    sum += weight(id);
    if (sum >= top_p * total) break;
  }
  return winner;
}

TEST(SamplerTest, TopPChoosesAsAPlainSortWould) {
  for (const float spread : {0.01f, 0.5f, 3.0f, 40.0f}) {
    std::vector<float> logits(5000);
    for (size_t i = 0; i < logits.size(); ++i) {
      const uint32_t word = Philox(11, {static_cast<uint32_t>(i), 0, 0, 0})[0];
      logits[i] = spread * (static_cast<float>(word) * 0x1p-31f - 1);
    }
    Sampler sampler(static_cast<int64_t>(logits.size()));
    for (const double top_p : {0.01, 0.3, 0.95, 0.9999}) {
      for (int64_t position = 0; position < 20; ++position) {
        const RaceKey key{.seed = 3, .choice = 1, .position = position};
        EXPECT_EQ(sampler.Choose(logits, {.top_p = top_p}, key),
                  ChooseBySorting(logits, top_p, key))
            << spread << " " << top_p << " " << position;
      }
    }
  }
}

TEST(SamplerTest, TheWinnerDependsOnSeedChoiceAndPositionOnly) {
  const std::vector<float> logits(512, 0.0f);
  Sampler sampler(512);
  const RaceKey key{.seed = 3, .choice = 1, .position = 9};
  const std::optional<int32_t> first = sampler.Choose(logits, {}, key);
  sampler.Choose(logits, {}, {.seed = 4, .choice = 1, .position = 9});
  EXPECT_EQ(sampler.Choose(logits, {}, key), first);
  EXPECT_NE(sampler.Choose(logits, {}, {.seed = 4, .choice = 1, .position = 9}), first);
  EXPECT_NE(sampler.Choose(logits, {}, {.seed = 3, .choice = 2, .position = 9}), first);
  EXPECT_NE(sampler.Choose(logits, {}, {.seed = 3, .choice = 1, .position = 10}), first);
}

TEST(SamplerTest, ForbiddenTokensNeverWin) {
  std::vector<float> logits(8, 0.0f);
  for (size_t i = 0; i < 7; ++i) logits[i] = -INFINITY;
  EXPECT_EQ(Draw(logits, {}, 100).size(), 1u);
  logits[7] = -INFINITY;
  EXPECT_EQ(Sampler(8).Choose(logits, {}, {}), std::nullopt);
  EXPECT_EQ(Sampler(8).Choose(logits, {.temperature = 0}, {}), std::nullopt);
}

TEST(SamplerTest, NumbersOutOfRangeNeverWinAgainstRealOnes) {
  const std::vector<float> logits = {NAN, 1, NAN, INFINITY, INFINITY};
  EXPECT_EQ(Draw(logits, {}, 100).size(), 2u);
  EXPECT_EQ(Sampler(5).Choose(logits, {.temperature = 0}, {}), 3);
  EXPECT_EQ(Draw({NAN, 1, NAN}, {.top_k = 2, .top_p = 0.9}, 100).at(1), 100);
}

TEST(SamplerTest, LogprobsAreLogSoftmaxBestFirst) {
  const std::vector<float> logits = LogitsOf({0.1, 0.4, 0.3, 0.2});
  std::vector<TokenLogprob> top(2);
  const float logprob = Sampler(4).Logprobs(logits, 0, top);
  EXPECT_NEAR(logprob, std::log(0.1), 1e-6);
  EXPECT_EQ(LogprobOf(logits, 0), logprob);
  EXPECT_EQ(top[0].token, 1);
  EXPECT_NEAR(top[1].logprob, std::log(0.3), 1e-6);
}

TEST(PenaltiesTest, RepetitionTouchesPromptAndOutputTheOthersOutputOnly) {
  TokenCounts counts(3);
  counts.AddPrompt(0);
  counts.AddOutput(1);
  counts.AddOutput(1);
  std::vector<float> logits = {2, -2, 5};
  counts.Apply({.repetition_penalty = 2,
                .presence_penalty = 0.5,
                .frequency_penalty = 0.25,
                .logit_bias = {{2, -3.0f}}},
               logits);
  EXPECT_EQ(logits, (std::vector<float>{1, -5, 2}));
}

TEST(SamplingParamsTest, ImpossibleParametersAreNamed) {
  const auto message = [](const SamplingParams& params) { return params.Validate(100).message(); };
  EXPECT_TRUE(SamplingParams{}.Validate(100).ok());
  EXPECT_NE(message({.temperature = -1}).find("temperature: found -1"), std::string::npos);
  EXPECT_NE(message({.temperature = NAN}).find("temperature"), std::string::npos);
  EXPECT_NE(message({.top_p = 0}).find("top_p"), std::string::npos);
  EXPECT_NE(message({.logit_bias = {{100, 1.0f}}}).find("logit_bias token"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
