// The n-gram rows of a chunk and of the next one are asked for before any layer of it runs.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "io/file.h"
#include "kernels/select.h"
#include "kv/block_pool.h"
#include "kv/sequence_state.h"
#include "model/manifest.h"
#include "model/transformer.h"

namespace deepinfer {
namespace {

// Remembers what was asked for, and what was fetched.
class RecordingSource : public NgramSource {
 public:
  explicit RecordingSource(std::unique_ptr<NgramSource> source) : source_(std::move(source)) {}

  void Prefetch(int table, std::span<const int64_t> rows) override {
    for (const int64_t row : rows) asked.emplace(table, row);
    source_->Prefetch(table, rows);
  }
  Status Fetch(int table, std::span<const int64_t> rows, uint8_t* codes, uint8_t* scales) override {
    for (const int64_t row : rows) fetched.emplace(table, row);
    return source_->Fetch(table, rows, codes, scales);
  }

  std::set<std::pair<int, int64_t>> asked;
  std::set<std::pair<int, int64_t>> fetched;

 private:
  std::unique_ptr<NgramSource> source_;
};

TEST(UpcomingRowsTest, AreAskedForOneStepAhead) {
  const Path dir = Path(DEEPINFER_SOURCE_DIR) / "tests/golden/tiny";
  Result<ModelConfig> config = ModelConfig::Load(dir);
  ASSERT_TRUE(config.ok());
  Result<Checkpoint> checkpoint = Checkpoint::Open(dir);
  ASSERT_TRUE(checkpoint.ok());
  const ModelWeights weights = ModelWeights::Bind(*checkpoint, *config);
  const Result<std::string> json = ReadFile(dir / "engram.json");
  ASSERT_TRUE(json.ok());
  const Result<NgramLayout> layout = NgramLayout::Parse(*config, *json);
  ASSERT_TRUE(layout.ok());
  const std::unique_ptr<ExpertSource> experts =
      MapExperts(*checkpoint, {.num_layers = config->num_layers,
                               .num_experts = config->num_experts,
                               .num_draft_blocks = config->num_draft_blocks,
                               .num_draft_experts = config->draft_num_experts});
  RecordingSource tables(MapNgramTables(*checkpoint, config->ngram_layers));
  Transformer transformer({.config = &*config,
                           .weights = &weights,
                           .ngram_layout = &*layout,
                           .experts = experts.get(),
                           .ngram_tables = &tables});
  ExecContext context(**SelectKernels(""));
  const KvLayout kv(Transformer::ShapeOf(*config, Numerics::kRelease));
  Result<BlockPool> pool = BlockPool::Create(kv.block_bytes(), 4);
  ASSERT_TRUE(pool.ok());
  SequenceState state(kv, *pool);

  std::vector<BatchRow> prompt;
  for (int i = 0; i < 24; ++i) prompt.push_back({.token = 7 + 13 * i, .pos = i});
  prompt[17].kind = RowKind::kImage;
  for (size_t begin = 0; begin < prompt.size(); begin += 8) {
    const std::span<const BatchRow> rows = std::span(prompt).subspan(begin, 8);
    const std::set<std::pair<int, int64_t>> asked_before = tables.asked;
    tables.fetched.clear();
    const SequenceSlice slice{
        .state = &state, .num_rows = 8, .upcoming = std::span(prompt).subspan(begin + 8)};
    ASSERT_TRUE(transformer.Forward(context, {.rows = rows, .slices = {&slice, 1}}, {}).ok());
    EXPECT_FALSE(tables.fetched.empty());
    if (begin == 0) continue;
    for (const auto& row : tables.fetched) {
      EXPECT_TRUE(asked_before.contains(row)) << row.first << " " << row.second;
    }
  }
}

}  // namespace
}  // namespace deepinfer
