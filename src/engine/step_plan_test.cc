#include "engine/step_plan.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

std::vector<StepShare> Plan(const std::vector<StepNeed>& needs, int64_t max_rows) {
  std::vector<StepShare> plan;
  PlanStep(needs, max_rows, plan);
  return plan;
}

TEST(StepPlanTest, DecodeRowsComeBeforePromptsOfOlderRequests) {
  EXPECT_EQ(Plan({{.prompt_left = 100}, {}, {.prompt_left = 5}, {}}, 60),
            (std::vector<StepShare>{{1, 1}, {3, 1}, {0, 58}}));
}

TEST(StepPlanTest, PromptsAreServedInOrderAndCutAtTheirChunk) {
  EXPECT_EQ(Plan({{.prompt_left = 100, .chunk = 30}, {.prompt_left = 50}}, 60),
            (std::vector<StepShare>{{0, 30}, {1, 30}}));
}

TEST(StepPlanTest, NeverMoreThanMaxRows) {
  EXPECT_EQ(Plan({{}, {}, {}}, 2), (std::vector<StepShare>{{0, 1}, {1, 1}}));
  EXPECT_TRUE(Plan({}, 2).empty());
}

}  // namespace
}  // namespace deepinfer
