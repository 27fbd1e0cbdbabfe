#include "model/prefix_hit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "io/file.h"

namespace deepinfer {
namespace {

using Json = nlohmann::json;

TEST(PrefixHitTest, HitRuleGivesTheRecordedLengths) {
  const Json golden =
      Json::parse(*ReadFile(Path(DEEPINFER_SOURCE_DIR) / "tests/golden/ops_extra.json"));
  int64_t hits = 0;
  for (const Json& item : golden.at("hit_rule")) {
    const bool everywhere = item.at("snapshots") == "all";
    const auto positions =
        everywhere ? std::vector<int64_t>() : item.at("snapshots").get<std::vector<int64_t>>();
    const auto has_snapshot = [&](int64_t position) {
      return everywhere || std::ranges::find(positions, position) != positions.end();
    };
    const UsableHit hit = FindUsableHit({.matched = item.at("matched"),
                                         .prompt_len = item.at("length"),
                                         .kept_rows = item.at("keep"),
                                         .window = 128},
                                        has_snapshot);
    EXPECT_EQ(hit.len, item.at("hit")) << item;
    EXPECT_EQ(hit.has_windows, item.at("windows") == "snapshot") << item;
    hits += hit.len > 0 ? 1 : 0;
  }
  EXPECT_GT(hits, 50);
}

TEST(PrefixHitTest, ReplayStartsAsFarBackAsItsKindNeeds) {
  ModelConfig config;
  config.window_size = 128;
  config.num_layers = 40;
  config.kv_source_layers = {2, 8, 14, 20};
  using Kind = ReplayRecord::Kind;
  EXPECT_EQ(PlanReplay(config, Kind::kSnapshot, 96896).start, 96896);
  EXPECT_EQ(PlanReplay(config, Kind::kBounded, 96896).start, 96768);
  EXPECT_EQ(PlanReplay(config, Kind::kExact, 96896).start, 96896 - 2688);
  EXPECT_EQ(PlanReplay(config, Kind::kExact, 1280).start, 0);
}

}  // namespace
}  // namespace deepinfer
