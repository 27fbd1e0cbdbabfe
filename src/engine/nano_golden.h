// Test support: the shipped model held against its golden.json, the published model's own answers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/generator.h"
#include "engine/model_instance.h"
#include "sampling/sampler.h"

namespace deepinfer {

// Below this gap between the two best logits another rounding may choose the other token.
inline constexpr double kClearMargin = 1.0;
inline constexpr double kNanoLogitTolerance = 0.5;

class NanoGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    const Path dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano";
    Result<std::unique_ptr<ModelInstance>> model = ModelInstance::Load({.dir = dir});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    golden_ = nlohmann::json::parse(*ReadFile(dir / "golden.json"));
  }

  // Checks the text cases whose prompts have min_len to max_len - 1 tokens.  Returns the number of
  // greedy tokens that were clear enough to compare.
  int64_t CheckCases(size_t min_len, size_t max_len) {
    int64_t compared = 0;
    for (const nlohmann::json& item : golden_.at("cases")) {
      const bool image = item.at("name").get<std::string>().starts_with("image");
      const size_t prompt_len = item.at("prompt_ids").size();
      if (!image && prompt_len >= min_len && prompt_len < max_len) compared += CheckCase(item);
    }
    return compared;
  }

 private:
  void Forward(SequenceState& state, std::span<const BatchRow> rows) {
    const SequenceSlice slice{.state = &state, .num_rows = static_cast<int64_t>(rows.size())};
    const auto last = static_cast<int32_t>(rows.size()) - 1;
    logits_.resize(static_cast<size_t>(model_->config().vocab_size));
    ASSERT_TRUE(model_->transformer()
                    .Forward(model_->context(),
                             {.rows = rows, .slices = {&slice, 1}, .logit_rows = {&last, 1}},
                             {.logits = logits_.data()})
                    .ok());
  }

  int64_t CheckCase(const nlohmann::json& item) {
    const nlohmann::json& golden = item.at("canonical");
    SequenceState state = model_->NewSequence();
    Forward(state, TextRows(item.at("prompt_ids").get<std::vector<int32_t>>()));
    for (const nlohmann::json& top : golden.at("first_top5")) {
      EXPECT_NEAR(logits_[top[0].get<size_t>()], top[1].get<double>(), kNanoLogitTolerance)
          << item.at("name");
    }
    const auto clear = ClearTokens(item);
    for (size_t i = 0; i < clear.size(); ++i) {
      EXPECT_EQ(ArgMax(logits_), clear[i]) << item.at("name") << " token " << i;
      const BatchRow row{.token = clear[i], .pos = state.len()};
      Forward(state, {&row, 1});
    }
    return static_cast<int64_t>(clear.size());
  }

  // The file holds two runs: of the published forward, and of the reference with the canonical key
  // list.  A token is clear as long as both chose it by a clear margin (in "needle 1500 c" they
  // part at token 7: 23 by 0.91 and 21 by 1.76).
  static std::vector<int32_t> ClearTokens(const nlohmann::json& item) {
    const nlohmann::json& canonical = item.at("canonical");
    const auto greedy = item.at("greedy").get<std::vector<int32_t>>();
    std::vector<int32_t> clear;
    const size_t shorter = std::min(greedy.size(), canonical.at("greedy").size());
    for (size_t i = 0; i < shorter; ++i) {
      const double margin = std::min(item.at("margin").at(i).get<double>(),
                                     canonical.at("margin").at(i).get<double>());
      if (margin < kClearMargin || canonical.at("greedy").at(i) != greedy[i]) break;
      clear.push_back(greedy[i]);
    }
    return clear;
  }

  std::unique_ptr<ModelInstance> model_;
  nlohmann::json golden_;
  std::vector<float> logits_;
};

}  // namespace deepinfer
