#include "model/prefill.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

ModelConfig ReleaseShape() {
  ModelConfig config;
  config.window_size = 128;
  config.num_layers = 40;
  config.kv_source_layers = {2, 8, 14, 20};
  return config;
}

TEST(PrefillRowsTest, ExactRowsAreThoseOfTheReport) {
  const ModelConfig config = ReleaseShape();
  EXPECT_EQ(ExactRows(config, 0), 2541);
  EXPECT_EQ(ExactRows(config, 1), 2414);
  EXPECT_EQ(ExactRows(config, 17), 382);
  EXPECT_EQ(ExactRows(config, 19), 128);
  int64_t row_layers = 0;
  const PrefillOptions exact{.mode = PrefillMode::kExact};
  for (int layer = 20; layer < 40; ++layer) {
    row_layers += 100000 - ComputeFrom(config, exact, 100000, layer);
  }
  EXPECT_EQ(row_layers, 24150);
}

TEST(PrefillRowsTest, ShortPromptsAreComputedWhole) {
  const ModelConfig config = ReleaseShape();
  for (const PrefillMode mode : {PrefillMode::kCompact, PrefillMode::kMask}) {
    EXPECT_EQ(ComputeFrom(config, {.mode = mode}, 140, 39), 0);
  }
  EXPECT_EQ(ComputeFrom(config, {.mode = PrefillMode::kCompact}, 141, 20), 1);
  EXPECT_EQ(ComputeFrom(config, {.mode = PrefillMode::kExact}, 2414, 20), 0);
  EXPECT_EQ(ComputeFrom(config, {.mode = PrefillMode::kExact}, 2415, 20), 1);
}

}  // namespace
}  // namespace deepinfer
