#include "kv/sequence_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace deepinfer {
namespace {

KvShape SmallShape() {
  return {.num_layers = 2,
          .num_draft_rings = 1,
          .window_size = 8,
          .head_dim = 32,
          .index_head_dim = 32,
          .ngram_look_back = 3,
          .sources = {{.layer = 0, .ratio = 2}, {.layer = 1, .ratio = 1}},
          .fp32_rows = false};
}

// A state whose step writes are recognisable: every byte of position p's rows is p (mod 251).
class SequenceStateTest : public testing::Test {
 protected:
  void Append(SequenceState& state, int64_t count) {
    const int64_t begin = state.len();
    ASSERT_TRUE(state.Reserve(count).ok());
    std::vector<std::byte> window(static_cast<size_t>(count * layout_.window_row_bytes()));
    std::vector<float> group(static_cast<size_t>(count * 2 * layout_.shape().head_dim));
    std::vector<int32_t> classes;
    for (int64_t i = 0; i < count; ++i) {
      const auto mark = static_cast<unsigned char>((begin + i) % 251);
      std::memset(window.data() + i * layout_.window_row_bytes(), mark,
                  static_cast<size_t>(layout_.window_row_bytes()));
      group[static_cast<size_t>(i * 2 * layout_.shape().head_dim)] = static_cast<float>(begin + i);
      classes.push_back(static_cast<int32_t>(begin + i));
      WriteEntries(state, begin + i, mark);
    }
    const StepWrites::Rows rows{window.data(), begin, count};
    const std::vector<StepWrites::Rows> rings(3, rows);
    const std::vector<StepWrites::Rows> groups = {
        {reinterpret_cast<const std::byte*>(group.data()), begin, count}, {}};
    state.Commit(
        {.num_tokens = count, .rings = rings, .groups = groups, .classes = classes.data()});
    ASSERT_TRUE(state.CheckIntegrity());
  }

  void WriteEntries(SequenceState& state, int64_t pos, unsigned char mark) {
    for (size_t s = 0; s < layout_.sections().size(); ++s) {
      const int ratio = layout_.sections()[s].ratio;
      if ((pos + 1) % ratio != 0) continue;
      std::memset(state.KvRows(static_cast<int>(s)).Row(pos / ratio), mark,
                  static_cast<size_t>(layout_.kv_row_bytes()));
      std::memset(state.IndexKeys(static_cast<int>(s)).Row(pos / ratio), mark,
                  static_cast<size_t>(layout_.key_row_bytes()));
    }
  }

  int RingMark(const SequenceState& state, int ring, int64_t pos) {
    return static_cast<int>(
        state.Ring(ring)[pos % layout_.ring_rows() * layout_.window_row_bytes()]);
  }
  int EntryMark(const SequenceState& state, int section, int64_t entry) {
    return static_cast<int>(*state.KvRows(section).Row(entry));
  }

  const KvLayout layout_{SmallShape()};
  BlockPool pool_ = *BlockPool::Create(layout_.block_bytes(), 8);
  const StateIdentity identity_{.fingerprint = {1, 2, 3}, .numerics_id = "test-1"};
};

TEST(KvLayoutTest, ReleasedDimensionsGive890BytesPerToken) {
  const KvLayout layout({.num_layers = 40,
                         .num_draft_rings = 3,
                         .window_size = 128,
                         .head_dim = 512,
                         .index_head_dim = 128,
                         .ngram_look_back = 3,
                         .sources = {{2, 2}, {8, 2}, {14, 2}, {20, 1}},
                         .fp32_rows = false});
  EXPECT_EQ(layout.block_bytes(), 113920);
  EXPECT_EQ(layout.window_row_bytes(), 528);
  EXPECT_EQ(layout.kv_row_bytes(), 288);
  EXPECT_EQ(layout.key_row_bytes(), 68);
}

TEST(BlockPoolTest, ReleaseOfLastRefReturnsBlockToFreeList) {
  BlockPool pool = *BlockPool::Create(64, 2);
  std::optional<BlockRef> a = pool.Allocate();
  {
    const BlockRef shared = a->Share();
    EXPECT_FALSE(a->IsExclusive());
    EXPECT_EQ(shared.data(), a->data());
  }
  EXPECT_TRUE(a->IsExclusive());
  EXPECT_EQ(pool.num_in_use(), 1);
  a.reset();
  EXPECT_EQ(pool.num_free(), 2);
  EXPECT_TRUE(pool.CheckIntegrity());
}

TEST(BlockPoolTest, ExhaustedPoolAnswersNo) {
  BlockPool pool = *BlockPool::Create(64, 1);
  const std::optional<BlockRef> a = pool.Allocate();
  EXPECT_TRUE(a.has_value());
  EXPECT_FALSE(pool.Allocate().has_value());
}

TEST_F(SequenceStateTest, RingsKeepTheWindowAndTheRollbackRows) {
  SequenceState state(layout_, pool_);
  Append(state, 10);
  Append(state, 40);
  for (int64_t pos = 50 - layout_.ring_rows(); pos < 50; ++pos) {
    EXPECT_EQ(RingMark(state, 1, pos), pos);
  }
  EXPECT_EQ(state.ClassAt(49), 49);
  EXPECT_EQ(state.ClassAt(50 - layout_.history_rows()), 50 - layout_.history_rows());
  EXPECT_EQ(state.GroupRow(0, 40)[0], 40.0f);
}

TEST_F(SequenceStateTest, AbandonedStepLeavesTheStateAsItWas) {
  SequenceState state(layout_, pool_);
  Append(state, 130);
  const std::string before = state.Serialize(identity_);
  ASSERT_TRUE(state.Reserve(200).ok());
  WriteEntries(state, 130, 99);  // past the committed length
  WriteEntries(state, 131, 99);
  EXPECT_EQ(state.len(), 130);
  Append(state, 2);
  SequenceState other(layout_, pool_);
  Append(other, 130);
  EXPECT_TRUE(other.Serialize(identity_) == before);
  Append(other, 2);
  EXPECT_TRUE(other.Serialize(identity_) == state.Serialize(identity_));
}

TEST_F(SequenceStateTest, RollbackThenAppendEqualsNeverHavingAppended) {
  SequenceState state(layout_, pool_);
  Append(state, 120);
  Append(state, 16);
  state.Rollback(16);
  EXPECT_TRUE(state.CheckIntegrity());
  for (int64_t pos = 120 - layout_.shape().window_size; pos < 120; ++pos) {
    EXPECT_EQ(RingMark(state, 0, pos), pos);
  }
  EXPECT_EQ(state.ClassAt(117), 117);
  Append(state, 3);
  EXPECT_EQ(RingMark(state, 0, 122), 122);
}

TEST_F(SequenceStateTest, ForkSharesBlocksUntilOneOfThemWrites) {
  SequenceState state(layout_, pool_);
  Append(state, 200);
  const int64_t in_use = pool_.num_in_use();
  SequenceState fork = state.Fork();
  EXPECT_EQ(pool_.num_in_use(), in_use);
  EXPECT_TRUE(fork.Serialize(identity_) == state.Serialize(identity_));
  Append(fork, 1);
  EXPECT_EQ(pool_.num_in_use(), in_use + 1);
  WriteEntries(fork, 200, 7);
  EXPECT_EQ(EntryMark(fork, 1, 200), 7);
  EXPECT_NE(EntryMark(state, 1, 200), 7);
  EXPECT_EQ(EntryMark(fork, 1, 199), 199);
}

TEST_F(SequenceStateTest, PrefixHitSharesBlocksAndWritesNoneOfThem) {
  SequenceState donor(layout_, pool_);
  Append(donor, 200);
  const std::vector<BlockRef> blocks = donor.ShareBlocks(200);
  const int64_t in_use = pool_.num_in_use();
  const std::vector<int32_t> classes = {181, 182, 183};
  SequenceState state = SequenceState::FromPrefix(
      {.len = 200, .blocks = blocks, .replay = {ReplayRecord::Kind::kBounded, 184}}, classes,
      layout_, pool_);
  EXPECT_EQ(state.len(), 184);
  EXPECT_EQ(state.entries_len(), 200);
  EXPECT_EQ(state.floors.encoder, 184);
  EXPECT_EQ(state.ClassAt(181), 181);
  EXPECT_EQ(state.ClassAt(183), 183);
  EXPECT_EQ(EntryMark(state, 1, 199), 199);

  // Rows behind the hit need no block; the first one past it copies the shared tail.
  ASSERT_TRUE(state.Reserve(16).ok());
  EXPECT_EQ(pool_.num_in_use(), in_use);
  EXPECT_EQ(state.KvRows(1).Row(199), donor.KvRows(1).Row(199));
  ASSERT_TRUE(state.Reserve(17).ok());
  EXPECT_EQ(pool_.num_in_use(), in_use + 1);
  EXPECT_NE(state.KvRows(1).Row(199), donor.KvRows(1).Row(199));
  EXPECT_EQ(state.KvRows(1).Row(127), donor.KvRows(1).Row(127));
  EXPECT_EQ(EntryMark(state, 1, 199), 199);
  EXPECT_TRUE(state.CheckIntegrity());
}

TEST_F(SequenceStateTest, WindowSnapshotsBringBackTheEncodersRowsOnly) {
  // Ring 2 is of a layer after the last source.
  SequenceState donor(layout_, pool_);
  Append(donor, 200);
  const WindowSnapshot windows = donor.CaptureWindows();
  EXPECT_EQ(windows.first_pos, 192);
  const std::vector<BlockRef> blocks = donor.ShareBlocks(200);
  const std::vector<int32_t> classes = {197, 198, 199};
  const SequenceState state =
      SequenceState::FromPrefix({.len = 200,
                                 .blocks = blocks,
                                 .windows = &windows,
                                 .replay = {ReplayRecord::Kind::kSnapshot, 200}},
                                classes, layout_, pool_);
  EXPECT_EQ(state.len(), 200);
  EXPECT_EQ(state.floors.encoder, 0);
  for (int64_t pos = 192; pos < 200; ++pos) {
    EXPECT_EQ(RingMark(state, 0, pos), pos);
    EXPECT_EQ(RingMark(state, 1, pos), pos);
    EXPECT_EQ(RingMark(state, 2, pos), 0);
  }
}

TEST_F(SequenceStateTest, WindowSnapshotsKeepTheFloorThatHidesTheirRows) {
  SequenceState donor(layout_, pool_);
  Append(donor, 20);
  donor.floors.encoder = 14;
  const WindowSnapshot windows = donor.CaptureWindows();
  EXPECT_EQ(windows.first_pos, 14);
  const std::vector<BlockRef> blocks = donor.ShareBlocks(20);
  const std::vector<int32_t> classes = {17, 18, 19};
  const SequenceState state =
      SequenceState::FromPrefix({.len = 20,
                                 .blocks = blocks,
                                 .windows = &windows,
                                 .replay = {ReplayRecord::Kind::kSnapshot, 20}},
                                classes, layout_, pool_);
  EXPECT_EQ(state.floors.encoder, 14);
}

TEST_F(SequenceStateTest, AStateInTheMiddleOfAReplayIsForkedAndRestored) {
  SequenceState donor(layout_, pool_);
  Append(donor, 200);
  const std::vector<BlockRef> blocks = donor.ShareBlocks(200);
  const std::vector<int32_t> classes = {125, 126, 127};
  const SequenceState state = SequenceState::FromPrefix(
      {.len = 200, .blocks = blocks, .replay = {ReplayRecord::Kind::kExact, 128}}, classes, layout_,
      pool_);
  const std::string bytes = state.Serialize(identity_);
  const Result<SequenceState> restored =
      SequenceState::Deserialize(bytes, identity_, layout_, pool_);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_TRUE(restored->Serialize(identity_) == bytes);
  EXPECT_TRUE(state.Fork().Serialize(identity_) == bytes);
  EXPECT_EQ(restored->len(), 128);
  EXPECT_EQ(restored->entries_len(), 200);
  EXPECT_EQ(EntryMark(*restored, 1, 199), 199);
}

TEST_F(SequenceStateTest, FullPoolRefusesAStepAndChangesNothing) {
  SequenceState state(layout_, pool_);
  Append(state, 100);
  const Status status = state.Reserve(8 * kBlockTokens);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(pool_.num_in_use(), 1);
  Append(state, 10);
}

TEST_F(SequenceStateTest, SerializedStateRestoresEqual) {
  SequenceState state(layout_, pool_);
  Append(state, 300);
  state.prompt_len = 290;
  state.floors = {.encoder = 10, .decoder = 20};
  state.replay = {.kind = ReplayRecord::Kind::kBounded, .start = 10};
  state.sampler_bytes = "seed";
  const std::string bytes = state.Serialize(identity_);
  Result<SequenceState> restored = SequenceState::Deserialize(bytes, identity_, layout_, pool_);
  ASSERT_TRUE(restored.ok()) << restored.status().message();
  EXPECT_TRUE(restored->Serialize(identity_) == bytes);
  EXPECT_EQ(restored->len(), 300);
  EXPECT_EQ(EntryMark(*restored, 1, 299), 299 % 251);
}

TEST_F(SequenceStateTest, DamagedForeignOrTruncatedBytesAreRefused) {
  SequenceState state(layout_, pool_);
  Append(state, 20);
  const std::string bytes = state.Serialize(identity_);
  for (const size_t at : {size_t{0}, size_t{9}, size_t{60}, bytes.size() / 2, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(SequenceState::Deserialize(damaged, identity_, layout_, pool_).ok()) << at;
  }
  for (size_t size = 0; size < bytes.size(); size += 97) {
    EXPECT_FALSE(SequenceState::Deserialize(bytes.substr(0, size), identity_, layout_, pool_).ok());
  }
  StateIdentity other = identity_;
  other.numerics_id = "test-2";
  const Result<SequenceState> foreign = SequenceState::Deserialize(bytes, other, layout_, pool_);
  ASSERT_FALSE(foreign.ok());
  EXPECT_NE(foreign.status().message().find("test-2"), std::string::npos);
  EXPECT_EQ(pool_.num_in_use(), 1);
}

}  // namespace
}  // namespace deepinfer
