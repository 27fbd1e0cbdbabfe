#include "synth/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/manifest.h"
#include "synth/tokenizer_files.h"

namespace deepinfer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Preset kPresets[] = {Preset::kTiny, Preset::kNano, Preset::kV41Slice};

ModelConfig Make(Preset preset, const PresetChanges& changes = {}) {
  const Result<ModelConfig> config = ConfigOf(preset, changes);
  EXPECT_TRUE(config.ok()) << config.status().message();
  return *config;
}

TEST(PresetsTest, SliceHasTheReleasedDimensionsInFourLayers) {
  const ModelConfig c = Make(Preset::kV41Slice);
  EXPECT_EQ(c.hidden_size, 5120);
  EXPECT_EQ(c.vocab_size, 129280);
  EXPECT_EQ(c.KindOf(0), LayerKind::kWindow);
  EXPECT_EQ(c.KindOf(1), LayerKind::kFull);
  EXPECT_EQ(c.KindOf(2), LayerKind::kFull);
  EXPECT_EQ(c.KindOf(3), LayerKind::kReindex);
  EXPECT_THAT(c.compress_ratios, ElementsAre(0, 2, 1, 1, 0, 0, 0));
  EXPECT_THAT(c.kv_source_layers, ElementsAre(1, 2));
  EXPECT_THAT(c.index_source_layers, ElementsAre(1, 2, 3));
  EXPECT_THAT(c.draft_target_layers, ElementsAre(1, 2, 3));
  EXPECT_EQ(c.candidate_source_layer, 2);
  EXPECT_EQ(c.num_experts, 32);
  EXPECT_EQ(c.draft_num_experts, 16);
  EXPECT_FALSE(c.has_vision);
  ASSERT_THAT(c.ngram_layers, ElementsAre(1));
  EXPECT_NEAR(static_cast<double>(c.ngram_table_rows[0]) * 264, 1e9, 1e7);
}

TEST(PresetsTest, TinyAndNanoHaveTheTensorsOfTheCheckpointsTheyAreNamedAfter) {
  const std::pair<Preset, const char*> pairs[] = {{Preset::kTiny, "tests/golden/tiny"},
                                                  {Preset::kNano, "models/nano"}};
  for (const auto& [preset, dir] : pairs) {
    const Result<ModelConfig> shipped = ModelConfig::Load(Path(DEEPINFER_SOURCE_DIR) / dir);
    ASSERT_TRUE(shipped.ok());
    const std::vector<TensorSpec> expected = SpecsOf(*shipped);
    const std::vector<TensorSpec> made = SpecsOf(Make(preset));
    ASSERT_EQ(made.size(), expected.size());
    for (size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(made[i].name, expected[i].name);
      EXPECT_EQ(made[i].shape, expected[i].shape) << made[i].name;
    }
  }
}

TEST(PresetsTest, EveryNumberOfLayersGivesAValidConfiguration) {
  for (const Preset preset : kPresets) {
    for (int layers = 1; layers <= 12; ++layers) {
      EXPECT_EQ(Make(preset, {.layers = layers}).num_layers, layers);
    }
  }
  const ModelConfig c = Make(Preset::kV41Slice, {.layers = 12});
  EXPECT_THAT(c.index_source_layers, ElementsAre(1, 2, 3, 7, 11));
  EXPECT_THAT(c.draft_target_layers, ElementsAre(9, 10, 11));
}

TEST(PresetsTest, PartsCanBeLeftOut) {
  for (const Preset preset : kPresets) {
    const ModelConfig c = Make(preset, {.no_ngram = true, .no_draft = true, .no_vision = true});
    EXPECT_TRUE(c.ngram_layers.empty());
    EXPECT_EQ(c.num_draft_blocks, 0);
    EXPECT_FALSE(c.has_vision);
  }
}

TEST(PresetsTest, SmallExpertCountsTakeTopKWithThem) {
  const ModelConfig c = Make(Preset::kV41Slice, {.experts = 2, .draft_experts = 1});
  EXPECT_EQ(c.num_experts_per_token, 2);
  EXPECT_EQ(c.draft_num_experts_per_token, 1);
}

TEST(PresetsTest, ImpossibleChangesAreRefused) {
  const auto refusal = [](const PresetChanges& changes) {
    const Result<ModelConfig> config = ConfigOf(Preset::kTiny, changes);
    EXPECT_EQ(config.status().code(), ErrorCode::kInvalidArgument);
    return config.status().message();
  };
  EXPECT_THAT(refusal({.layers = 0}), HasSubstr("--layers: found 0"));
  EXPECT_THAT(refusal({.vocab_size = 100}), HasSubstr("--vocab: found 100"));
  EXPECT_THAT(refusal({.experts = 0}), HasSubstr("n_routed_experts"));
  EXPECT_THAT(refusal({.max_position_embeddings = 0}), HasSubstr("max_position_embeddings"));
}

TEST(PresetsTest, ConfigurationsSurviveWritingAndReading) {
  for (const char* dir : {"tests/golden/tiny", "tests/golden/wide", "models/nano"}) {
    const Result<ModelConfig> config = ModelConfig::Load(Path(DEEPINFER_SOURCE_DIR) / dir);
    ASSERT_TRUE(config.ok());
    const std::string text = ConfigJson(*config);
    const Result<ModelConfig> again = ModelConfig::Parse(text);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(ConfigJson(*again), text);
    EXPECT_EQ(again->rms_norm_eps, config->rms_norm_eps);
    EXPECT_EQ(again->draft_noise_token, config->draft_noise_token);
    EXPECT_EQ(again->vision.min_pixels, config->vision.min_pixels);
  }
  EXPECT_THAT(ConfigJson(Make(Preset::kTiny)), HasSubstr("\"rms_norm_eps\": 1e-20"));
}

}  // namespace
}  // namespace deepinfer
