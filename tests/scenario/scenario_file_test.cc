#include "tests/scenario/scenario_file.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

constexpr std::string_view kText =
    "# why\n"
    "\n"
    "add 1 prompt=30 quick\n"
    "plan\n"
    "----\n"
    "admit 1\n"
    "rows\n"
    "\n"
    "# the end\n"
    "stop\n"
    "----\n";

TEST(ScenarioFileTest, TextComesBackAsItWas) {
  const Result<Scenario> scenario = ParseScenario(kText);
  ASSERT_TRUE(scenario.ok());
  ASSERT_EQ(scenario->blocks.size(), 2U);
  EXPECT_EQ(scenario->blocks[0].commands.size(), 2U);
  EXPECT_EQ(scenario->blocks[0].expected, "admit 1\nrows\n");
  EXPECT_EQ(scenario->blocks[1].expected, "");
  EXPECT_EQ(scenario->Text(), kText);
}

TEST(ScenarioFileTest, ACommandNamesTheWordsThatNobodyAskedFor) {
  const Result<Scenario> scenario = ParseScenario(kText);
  ASSERT_TRUE(scenario.ok());
  const ScenarioCommand& command = scenario->blocks[0].commands[0];
  EXPECT_EQ(command.name, "add");
  EXPECT_EQ(command.First(), 1);
  EXPECT_EQ(command.Number("prompt", 7), 30);
  EXPECT_EQ(command.Number("output", 7), 7);
  EXPECT_EQ(command.Unknown(), "quick");
  EXPECT_TRUE(command.Has("quick"));
  EXPECT_EQ(command.Unknown(), "");
}

TEST(ScenarioFileTest, CommandsWithoutDashesAreRefused) {
  EXPECT_EQ(ParseScenario("plan\n").status().message(),
            "found 'plan' as the last command, expected ---- behind it");
  EXPECT_EQ(ParseScenario("plan\n\n----\n").status().message(),
            "line 2: found '', expected a command or ----");
}

TEST(ScenarioFileTest, ADifferenceShowsTheLinesAroundIt) {
  EXPECT_EQ(LineDiff("a\nb\nc\n", "a\nx\nc\nd\n"), "  a\n- b\n+ x\n  c\n+ d\n");
}

}  // namespace
}  // namespace deepinfer
