// What runs behind a prefix hit writes no cached block.
#include "model/prefix_hit.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "engine/same_bits.h"

namespace deepinfer {
namespace {

// Makes the whole pages of some blocks read-only while it lives: a write ends the program.
class WriteProtection {
 public:
  WriteProtection(std::span<const BlockRef> blocks, int64_t block_bytes) {
    std::vector<std::byte*> starts;
    for (const BlockRef& block : blocks) starts.push_back(block.data());
    std::ranges::sort(starts);
    for (size_t i = 0; i < starts.size();) {
      size_t end = i + 1;
      while (end < starts.size() && starts[end] == starts[end - 1] + block_bytes) ++end;
      Protect(starts[i], starts[end - 1] + block_bytes);
      i = end;
    }
  }
  WriteProtection(const WriteProtection&) = delete;
  WriteProtection& operator=(const WriteProtection&) = delete;
  ~WriteProtection() {
    for (const auto& [begin, size] : pages_) mprotect(begin, size, PROT_READ | PROT_WRITE);
  }

  size_t bytes() const {
    size_t sum = 0;
    for (const auto& [begin, size] : pages_) sum += size;
    return sum;
  }

 private:
  void Protect(std::byte* begin, std::byte* end) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
    const uintptr_t last = reinterpret_cast<uintptr_t>(end) / page * page;
    if (first >= last) return;
    auto* pages = reinterpret_cast<std::byte*>(first);
    ASSERT_EQ(mprotect(pages, last - first, PROT_READ), 0);
    pages_.emplace_back(pages, last - first);
  }

  std::vector<std::pair<std::byte*, size_t>> pages_;
};

class PrefixHitTest : public testing::TestWithParam<ReplayRecord::Kind> {
 protected:
  static constexpr int64_t kHit = 768;  // six blocks; an exact replay starts at 128
  static constexpr int64_t kPrompt = 920;
  static constexpr PrefillOptions kCompact{};

  void SetUp() override {
    model_ = LoadOrDie({.dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano", .max_sequences = 4});
    ASSERT_NE(model_, nullptr);
    rows_ = TextRows(RandomTokens(kPrompt, model_->config().vocab_size, 11));
  }

  void Feed(SequenceState& state, int64_t end) {
    const auto rows = std::span(rows_).subspan(static_cast<size_t>(state.len()),
                                               static_cast<size_t>(end - state.len()));
    const SequenceSlice slice{
        .state = &state, .num_rows = static_cast<int64_t>(rows.size()), .prefill = kCompact};
    ASSERT_TRUE(model_->transformer()
                    .Forward(model_->context(), {.rows = rows, .slices = {&slice, 1}}, {})
                    .ok());
  }

  std::string BytesOf(std::span<const BlockRef> blocks) const {
    std::string bytes;
    for (const BlockRef& block : blocks) {
      bytes.append(reinterpret_cast<const char*>(block.data()),
                   static_cast<size_t>(model_->layout().block_bytes()));
    }
    return bytes;
  }

  std::unique_ptr<ModelInstance> model_;
  std::vector<BatchRow> rows_;
};

TEST_P(PrefixHitTest, CachedBlocksAreReadOnly) {
  SequenceState cold = model_->NewSequence();
  BeginPrompt(cold, kCompact, kPrompt);
  Feed(cold, kHit);
  const std::vector<BlockRef> blocks = cold.ShareBlocks(kHit);
  const WindowSnapshot windows = cold.CaptureWindows();
  const std::string before = BytesOf(blocks);

  const bool snapshot = GetParam() == ReplayRecord::Kind::kSnapshot;
  const ReplayRecord replay = PlanReplay(model_->config(), GetParam(), kHit);
  SequenceState state = model_->NewSequence(
      {.len = kHit, .blocks = blocks, .windows = snapshot ? &windows : nullptr, .replay = replay},
      rows_, kCompact);
  EXPECT_EQ(state.len(), replay.start);
  {
    const WriteProtection protection(blocks, model_->layout().block_bytes());
    EXPECT_GT(protection.bytes(), before.size() * 9 / 10);
    Feed(state, (replay.start + kHit) / 2 + 1);  // a chunk may end among the replayed rows
    Feed(state, kPrompt);
  }
  EXPECT_TRUE(BytesOf(blocks) == before);
  EXPECT_EQ(state.entries_len(), kPrompt);

  Feed(cold, kPrompt);
  state.replay = {};
  const bool same = state.Serialize(model_->identity()) == cold.Serialize(model_->identity());
  EXPECT_EQ(same, GetParam() != ReplayRecord::Kind::kBounded);
}

INSTANTIATE_TEST_SUITE_P(WaysBack, PrefixHitTest,
                         testing::Values(ReplayRecord::Kind::kSnapshot,
                                         ReplayRecord::Kind::kBounded, ReplayRecord::Kind::kExact),
                         [](const auto& tested) {
                           return tested.param == ReplayRecord::Kind::kSnapshot  ? "Snapshot"
                                  : tested.param == ReplayRecord::Kind::kBounded ? "Bounded"
                                                                                 : "Exact";
                         });

}  // namespace
}  // namespace deepinfer
