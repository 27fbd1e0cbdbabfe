#include "model/manifest.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "weights/checkpoint.h"

namespace deepinfer {
namespace {

ModelConfig ConfigIn(const char* path) {
  const Result<std::string> json = ReadFile(Path(DEEPINFER_SOURCE_DIR) / path);
  EXPECT_TRUE(json.ok());
  const Result<ModelConfig> config = ModelConfig::Parse(*json);
  EXPECT_TRUE(config.ok()) << config.status().message();
  return *config;
}

TEST(ManifestTest, ReleasedConfigurationGivesThePublishedTotals) {
  const std::vector<ManifestEntry> entries = ManifestOf(ConfigIn("tests/data/v41_config.json"));
  int64_t bytes = 0;
  std::set<std::string> names;
  for (const ManifestEntry& entry : entries) {
    bytes += entry.spec.num_bytes();
    names.insert(entry.spec.name);
  }
  EXPECT_EQ(entries.size(), 96085u);
  EXPECT_EQ(names.size(), 96085u);
  EXPECT_EQ(bytes, 510'286'023'000);
}

TEST(ManifestTest, ReleasedShapesAreThoseOfTheSpecification) {
  std::map<std::string, std::string> shapes;
  for (const ManifestEntry& entry : ManifestOf(ConfigIn("tests/data/v41_config.json"))) {
    shapes[entry.spec.name] = DescribeTensor(entry.spec.dtype, entry.spec.shape);
  }
  EXPECT_EQ(shapes["layers.3.attn.wo_a.scale"], "F8_E8M0 [256, 128]");
  EXPECT_EQ(shapes["layers.39.ffn.experts.383.w2.weight"], "I8 [5120, 1152]");
  EXPECT_EQ(shapes["layers.14.attn.compressor.wgate.weight"], "BF16 [512, 5120]");
  EXPECT_EQ(shapes.count("layers.20.attn.compressor.wgate.weight"), 0u);
  EXPECT_EQ(shapes["layers.24.attn.indexer.wq_b.weight"], "F8_E4M3 [4096, 1280]");
  EXPECT_EQ(shapes.count("layers.24.attn.indexer.wk.weight"), 0u);
  EXPECT_EQ(shapes["layers.14.engram.embed.scale"], "F8_E8M0 [384016682, 8]");
  EXPECT_EQ(shapes["layers.1.engram.wkv.weight"], "F8_E4M3 [25600, 6144]");
  EXPECT_EQ(shapes["mtp.0.main_proj.scale"], "F8_E8M0 [160, 480]");
  EXPECT_EQ(shapes["mtp.2.confidence_head.proj.weight"], "BF16 [1, 5376]");
  EXPECT_EQ(shapes.count("mtp.1.norm.weight"), 0u);
  EXPECT_EQ(shapes["layers.0.hc_attn_fn"], "F32 [24, 20480]");
  EXPECT_EQ(shapes["aligner.w1.weight"], "BF16 [5120, 9216]");
}

TEST(ManifestTest, EveryCheckpointInTheRepositoryMatchesIts) {
  for (const char* dir : {"tests/golden/tiny", "models/nano"}) {
    const Path path = Path(DEEPINFER_SOURCE_DIR) / dir;
    const Result<ModelConfig> config = ModelConfig::Load(path);
    ASSERT_TRUE(config.ok()) << config.status().message();
    const Result<Checkpoint> checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    const Status valid = checkpoint->Validate(SpecsOf(*config));
    EXPECT_TRUE(valid.ok()) << valid.message();
  }
}

TEST(ManifestTest, PartsThatTheConfigurationLacksAreNotExpected) {
  ModelConfig config = ConfigIn("tests/golden/tiny/config.json");
  config.num_draft_blocks = 0;
  config.ngram_layers.clear();
  config.has_vision = false;
  for (const ManifestEntry& entry : ManifestOf(config)) {
    EXPECT_NE(entry.part, ModelPart::kDraft);
    EXPECT_NE(entry.part, ModelPart::kNgramTables);
    EXPECT_NE(entry.part, ModelPart::kVision);
  }
}

}  // namespace
}  // namespace deepinfer
