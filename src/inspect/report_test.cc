#include "inspect/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "inspect/render.h"

namespace deepinfer {
namespace {

using testing::HasSubstr;

Result<InspectReport> ReportOf(const char* path) {
  return Inspect({.path = Path(DEEPINFER_SOURCE_DIR) / path, .isa = "scalar"});
}

TEST(InspectTest, ReleasedConfigurationAloneGivesThePublishedFigures) {
  const Result<InspectReport> report = ReportOf("tests/data/v41_config.json");
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->num_tensors(), 96085);
  EXPECT_EQ(report->num_bytes(), 510'286'023'000);
  EXPECT_EQ(report->cache.bytes_per_token, 890);
  EXPECT_EQ(report->cache.kv_row_bytes, 288);
  EXPECT_EQ(report->cache.index_key_bytes, 68);
  EXPECT_EQ(report->cache.window_row_bytes, 528);
  EXPECT_EQ(report->cache.block_bytes, 113'920);
  // "13.0 GB in all", model.md section 2.
  EXPECT_NEAR(static_cast<double>(report->bytes_per_token()), 13.0e9, 0.05e9);
  EXPECT_FALSE(report->files.has_value());
}

TEST(InspectTest, TextHoldsTheTotalsAndTheLayerMap) {
  const Result<InspectReport> report = ReportOf("tests/data/v41_config.json");
  ASSERT_TRUE(report.ok());
  const std::string text = RenderText(*report);
  EXPECT_THAT(text, HasSubstr("96,085"));
  EXPECT_THAT(text, HasSubstr("510,286,023,000"));
  EXPECT_THAT(text, HasSubstr("890 bytes of cache per token"));
  EXPECT_THAT(text, HasSubstr("24     decoder  reindex  ratio 1, KV and keys of layer 20"));
  EXPECT_THAT(text,
              HasSubstr("37-39  decoder  reuse    ratio 1, KV of layer 20, selection of layer 36"));
}

TEST(InspectTest, JsonHoldsTheSameNumbers) {
  const Result<InspectReport> report = ReportOf("models/nano");
  ASSERT_TRUE(report.ok()) << report.status().message();
  const nlohmann::json json = nlohmann::json::parse(RenderJson(*report));
  EXPECT_EQ(json["tensors"], report->num_tensors());
  EXPECT_EQ(json["files"]["count"], 2);
  EXPECT_EQ(json["files"]["tensors"], report->num_tensors());
  EXPECT_EQ(json["cache"]["bytes_per_token"], 105);
  EXPECT_EQ(json["layers"].size(), 8u);
  int64_t bytes = 0;
  for (const auto& part : json["parts"]) bytes += part["bytes"].get<int64_t>();
  EXPECT_EQ(json["bytes"], bytes);
}

TEST(InspectTest, MemoryPlanFollowsTheContextLength) {
  const Path config = Path(DEEPINFER_SOURCE_DIR) / "tests/data/v41_config.json";
  const Result<InspectReport> report =
      Inspect({.path = config, .max_model_len = 1000, .memory = uint64_t{64} << 30});
  ASSERT_TRUE(report.ok());
  ASSERT_TRUE(report->memory.ok()) << report->memory.status().message();
  EXPECT_EQ(report->memory->num_blocks, 9);  // one for the tail that a fork shares
  EXPECT_EQ(report->memory->max_model_len, 1000);
  EXPECT_EQ(Inspect({.path = config, .max_model_len = 1 << 21}).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST(InspectTest, ABudgetThatIsTooSmallIsAFinding) {
  const Path config = Path(DEEPINFER_SOURCE_DIR) / "tests/data/v41_config.json";
  const Result<InspectReport> report = Inspect({.path = config, .memory = uint64_t{4} << 30});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(RenderText(*report), HasSubstr("does not start: memory: found a budget of 4.29 GB"));
  EXPECT_THAT(RenderText(*report), HasSubstr("raise --memory"));
}

TEST(InspectTest, WrongPlacesAreNamed) {
  EXPECT_THAT(ReportOf("no/such/place").status().message(), HasSubstr("no/such/place"));
  EXPECT_THAT(ReportOf("README-of-nothing.json").status().message(),
              HasSubstr("README-of-nothing"));
  EXPECT_THAT(ReportOf("models/nano/tokenizer.json").status().message(), HasSubstr("model_type"));
}

}  // namespace
}  // namespace deepinfer
