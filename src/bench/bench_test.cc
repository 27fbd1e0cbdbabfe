#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/decode_schedule.h"
#include "bench/measure.h"
#include "bench/render.h"

namespace deepinfer {
namespace {

BenchResult OneRowOf(std::string name, double ms) {
  return {.name = std::move(name),
          .rows = 1,
          .ms = ms,
          .gmacs = 10,
          .gbytes = 5,
          .limit = "dram",
          .percent_of_limit = 50};
}

std::vector<BenchResult> AllOps() {
  std::vector<BenchResult> results;
  for (const char* name :
       {"linear_wq_a", "linear_wq_b", "linear_wo_b", "linear_engram", "grouped_wo_a", "ffn_mxfp4",
        "ffn_shared", "gate", "mhc", "attention", "index_1k", "index_16k", "index_1m", "head"}) {
    results.push_back(OneRowOf(name, 1));
  }
  return results;
}

Roofline SmallRoofline() {
  return {.processor = "some <processor>",
          .isa = "scalar",
          .dram_gbps = {10, 15},
          .l3_gbps = {20, 40},
          .l2_gbps = {30, 60},
          .bf16_gmacs = {50, 100},
          .int8_gmacs = {100, 200}};
}

TEST(MeasureTest, RunsAtLeastAsOftenAsAskedFor) {
  int calls = 0;
  const Timing timing = Measure([&] { ++calls; }, {.seconds = 0, .least = 7});
  EXPECT_EQ(timing.repeats, 7);
  EXPECT_EQ(calls, 8);  // one to warm up
  EXPECT_LE(timing.fastest, timing.median);
}

TEST(DecodeScheduleTest, ALongContextCostsItsIndexOnly) {
  std::vector<BenchResult> results = AllOps();
  const auto equal = ComputeDecodeSchedule(results);
  ASSERT_TRUE(equal.has_value());
  EXPECT_NEAR(equal->ms_at_1k, equal->ms_at_1m, 1e-9);
  for (BenchResult& result : results) {
    if (result.name == "index_1m") result.ms = 101;
  }
  // Three sources of half as many entries, and one of all.
  EXPECT_NEAR(ComputeDecodeSchedule(results)->ms_at_1m, equal->ms_at_1m + 2.5 * 100, 1e-9);
}

TEST(DecodeScheduleTest, NeedsEveryOpWithOneRow) {
  for (size_t i = 0; i < AllOps().size(); ++i) {
    std::vector<BenchResult> results = AllOps();
    results[i].rows = 2;
    EXPECT_FALSE(ComputeDecodeSchedule(results).has_value()) << results[i].name;
  }
}

TEST(RenderTest, KernelsJsonHoldsWhatWasMeasured) {
  const std::vector<BenchResult> results = AllOps();
  const auto json = nlohmann::json::parse(KernelsJson(SmallRoofline(), results));
  EXPECT_EQ(json.at("machine").at("threads"), 2);
  ASSERT_EQ(json.at("results").size(), results.size());
  EXPECT_EQ(json.at("results").at(0).at("name"), "linear_wq_a");
  EXPECT_EQ(json.at("results").at(0).at("percent_of_limit"), 50);
}

TEST(RenderTest, TheRooflinePlotNamesEveryPointAndEscapesText) {
  const std::vector<BenchResult> results = AllOps();
  const std::string svg = RooflineSvg(SmallRoofline(), results);
  for (const BenchResult& result : results) {
    EXPECT_NE(svg.find(">" + result.name + " 1<"), std::string::npos) << result.name;
  }
  EXPECT_EQ(svg.find("<processor>"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace deepinfer
