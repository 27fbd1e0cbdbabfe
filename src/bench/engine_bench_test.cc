#include "bench/engine_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using testing::HasSubstr;

TEST(EngineLoadTest, TheSameLoadGivesTheSameRequests) {
  const EngineLoad load = EngineLoadNamed("agent");
  const std::vector<LoadRequest> a = MakeRequests(load, 1000);
  const std::vector<LoadRequest> b = MakeRequests(load, 1000);
  ASSERT_EQ(a.size(), static_cast<size_t>(load.requests));
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].prompt, b[i].prompt);
    EXPECT_EQ(a[i].arrival, b[i].arrival);
    EXPECT_EQ(a[i].output_len, b[i].output_len);
  }
}

TEST(EngineLoadTest, LengthsStayInTheirBoundsAndSharedPromptsBeginAlike) {
  EngineLoad load = EngineLoadNamed("agent");
  load.requests = 400;
  load.shared_share = 0.5;
  int64_t shared = 0;
  const std::vector<LoadRequest> requests = MakeRequests(load, 1000);
  std::vector<int32_t> beginning;
  for (const LoadRequest& request : requests) {
    const auto len = std::ssize(request.prompt);
    const bool begins = len > load.shared_len && !beginning.empty() &&
                        std::equal(beginning.begin(), beginning.end(), request.prompt.begin());
    if (beginning.empty() && len > load.prompt.max) {
      beginning.assign(request.prompt.begin(), request.prompt.begin() + load.shared_len);
    }
    if (begins) ++shared;
    const int64_t own = begins ? len - load.shared_len : len;
    EXPECT_GE(own, load.prompt.min);
    EXPECT_LE(own, load.prompt.max + load.shared_len);
    EXPECT_GE(request.output_len, load.output.min);
    EXPECT_LE(request.output_len, load.output.max);
  }
  EXPECT_GT(shared, 100);
  EXPECT_LT(shared, 300);
}

TEST(EngineLoadTest, ArrivalsComeAtTheirRate) {
  EngineLoad load = EngineLoadNamed("chat");
  load.requests = 2000;
  load.rate = 50;
  const std::vector<LoadRequest> requests = MakeRequests(load, 100);
  EXPECT_NEAR(requests.back().arrival, 40, 4);
  for (size_t i = 1; i < requests.size(); ++i) {
    EXPECT_GT(requests[i].arrival, requests[i - 1].arrival);
  }
}

TEST(EngineLoadTest, ALoadIsReadAsItIsWritten) {
  for (const std::string& name : EngineLoadNames()) {
    const std::string json = EngineLoadJson(EngineLoadNamed(name));
    const Result<EngineLoad> again = ParseEngineLoad(json);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(EngineLoadJson(*again), json);
  }
}

TEST(EngineLoadTest, BadLoadsAreRefusedByField) {
  const auto message = [](std::string_view json) {
    return ParseEngineLoad(json).status().message();
  };
  EXPECT_EQ(message("{"), "found malformed JSON, expected an object");
  EXPECT_THAT(message(R"({"rats":1})"), HasSubstr("found unknown field 'rats', expected one of"));
  EXPECT_EQ(message(R"({"requests":"x"})"), "requests: found \"x\", expected an integer");
  EXPECT_EQ(message(R"({"requests":0})"), "requests: found 0, expected 1 or more");
  EXPECT_THAT(message(R"({"prompt":{"min":5,"max":2}})"), HasSubstr("prompt: found min 5, max 2"));
  EXPECT_THAT(message(R"({"shared_share":2})"), HasSubstr("expected 0 to 1"));
}

TEST(EngineBenchTest, QuantilesAreThoseOfTheNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Quantiles quantiles = QuantilesOf(values);
  EXPECT_EQ(quantiles.p50, 50);
  EXPECT_EQ(quantiles.p90, 90);
  EXPECT_EQ(quantiles.p99, 99);
  EXPECT_EQ(quantiles.max, 100);
  EXPECT_EQ(QuantilesOf({}).max, 0);
}

TEST(EngineBenchTest, ALoadIsMeasuredAndItsFiguresAddUp) {
  Result<Engine> engine =
      Engine::Open({.model_dir = std::string(DEEPINFER_SOURCE_DIR) + "/models/nano", .threads = 2});
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  EngineLoad load = EngineLoadNamed("batch");
  load.requests = 20;
  load.in_flight = 8;
  int64_t told = 0;
  const Result<EngineBenchResult> result =
      BenchEngine(*engine, load, [&](int64_t done, int64_t /*total*/) { told = done; });
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(told, 20);
  EXPECT_EQ(result->figures.num_finished, 20);
  EXPECT_EQ(result->figures.output_tokens, 20 * 32);
  EXPECT_GT(result->first_token_ms.p50, 0);
  EXPECT_GE(result->request_ms.p50, result->first_token_ms.p50);
  const nlohmann::json json = nlohmann::json::parse(EngineBenchJson(*result));
  int64_t steps = 0;
  for (const auto& row : json["steps_by_size"]) steps += row["steps"].get<int64_t>();
  EXPECT_EQ(steps, result->figures.num_steps);
  EXPECT_THAT(EngineBenchText(*result), HasSubstr("compute threads idle"));
  EXPECT_THAT(StepSizeSvg(*result), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace deepinfer
