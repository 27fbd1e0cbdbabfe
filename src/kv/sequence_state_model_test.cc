// Random operations on many states of one small pool, held against a model that knows every byte
// only as "the mark of the step that wrote it".
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>

#include "base/random.h"
#include "kv/set_aside.h"

namespace deepinfer {
namespace {

constexpr int kRings = 3;
constexpr int kWindow = 8;
constexpr int kHead = 32;
constexpr int kUnknown = -1;

KvShape SmallShape() {
  return {.num_layers = 2,
          .num_draft_rings = 1,
          .window_size = kWindow,
          .head_dim = kHead,
          .index_head_dim = 32,
          .ngram_look_back = 3,
          .sources = {{.layer = 0, .ratio = 2}, {.layer = 1, .ratio = 1}},
          .fp32_rows = false};
}

// What a state should hold.
struct Expected {
  int64_t len = 0;
  int64_t entries_len = 0;
  int64_t first_rollback = 0;
  int64_t encoder_floor = 0;
  std::vector<uint8_t> entries[2];  // [section][entries_len / ratio]
  std::vector<int> window[kRings];  // [ring][len]
  std::vector<int32_t> classes;     // [len]
};

struct Sequence {
  SequenceState state;
  Expected expected;
};

struct Cached {
  std::vector<BlockRef> blocks;
  std::optional<WindowSnapshot> windows;
  Expected expected;  // of the prefix
};

struct Away {
  SetAsideState bytes;
  Expected expected;
};

class Machine {
 public:
  explicit Machine(uint64_t seed) : seed_(seed) {}

  void Run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      RandomOperation();
      CheckAll();
    }
    sequences_.clear();
    cached_.clear();
    away_.clear();
    EXPECT_EQ(pool_.num_in_use(), 0);
    EXPECT_EQ(memory_.used(), 0);
    EXPECT_TRUE(pool_.CheckIntegrity());
  }

  // How often each operation happened, and how often there was no room.
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  static constexpr size_t kMostSequences = 8;

  uint32_t Draw(uint32_t below) { return Philox(seed_, {next_random_++, 0, 0, 0})[0] % below; }
  Sequence& Pick() { return sequences_[Draw(static_cast<uint32_t>(sequences_.size()))]; }
  bool Full() const { return sequences_.size() == kMostSequences; }

  void RandomOperation() {
    const uint32_t dice = Draw(100);
    if (sequences_.empty() || (dice < 5 && !Full())) return New();
    if (dice < 45) return Append(Pick());
    if (dice < 52) return Abandon(Pick());
    if (dice < 62) return Rollback(Pick());
    if (dice < 70) return Fork();
    if (dice < 76) return Cache(Pick());
    if (dice < 84) return FromPrefix();
    if (dice < 90) return SetAside();
    if (dice < 96) return Restore();
    if (dice < 98 && !cached_.empty()) return Erase(cached_, "evict");
    Erase(sequences_, "drop");
  }

  template <typename T>
  void Erase(std::vector<T>& from, const char* what) {
    ++counts_[what];
    from.erase(from.begin() + Draw(static_cast<uint32_t>(from.size())));
  }

  void New() {
    ++counts_["new"];
    sequences_.push_back({SequenceState(layout_, pool_), {}});
  }

  // Reserve either has its blocks or changes nothing.
  bool Reserve(SequenceState& state, int64_t count) {
    const int64_t wanted = state.BlocksToReserve(count);
    const int64_t free = pool_.num_free();
    const int64_t held = state.num_blocks();
    const Status status = state.Reserve(count);
    EXPECT_EQ(status.ok(), wanted <= free);
    EXPECT_EQ(pool_.num_free(), status.ok() ? free - wanted : free);
    if (!status.ok()) {
      EXPECT_EQ(status.code(), ErrorCode::kResourceExhausted);
      EXPECT_EQ(state.num_blocks(), held);
      ++counts_["no blocks"];
    }
    return status.ok();
  }

  int64_t Count() { return Draw(4) == 0 ? 1 + Draw(150) : 1 + Draw(12); }

  void Append(Sequence& sequence) {
    const int64_t count = Count();
    if (!Reserve(sequence.state, count)) return;
    ++counts_["append"];
    const auto mark = static_cast<uint8_t>(1 + Draw(255));
    WriteEntries(sequence, count, mark, &sequence.expected);
    Commit(sequence, count, mark);
  }

  // A step that is never committed leaves the bytes as they were.
  void Abandon(Sequence& sequence) {
    const std::string before = sequence.state.Serialize(identity_);
    const int64_t count = Count();
    if (!Reserve(sequence.state, count)) return;
    ++counts_["abandon"];
    WriteEntries(sequence, count, static_cast<uint8_t>(Draw(256)), nullptr);
    EXPECT_TRUE(sequence.state.Serialize(identity_) == before);
  }

  // The entries that rows [len, len + count) complete, as a step writes them.
  void WriteEntries(Sequence& sequence, int64_t count, uint8_t mark, Expected* expected) {
    const int64_t begin = std::max(sequence.state.len(), sequence.state.entries_len());
    for (int64_t pos = begin; pos < sequence.state.len() + count; ++pos) {
      for (int s = 0; s < 2; ++s) {
        const int ratio = layout_.sections()[static_cast<size_t>(s)].ratio;
        if ((pos + 1) % ratio != 0) continue;
        std::memset(sequence.state.KvRows(s).Row(pos / ratio), mark,
                    static_cast<size_t>(layout_.kv_row_bytes()));
        std::memset(sequence.state.IndexKeys(s).Row(pos / ratio), mark,
                    static_cast<size_t>(layout_.key_row_bytes()));
        if (expected != nullptr) expected->entries[s].push_back(mark);
      }
    }
  }

  void Commit(Sequence& sequence, int64_t count, uint8_t mark) {
    Expected& expected = sequence.expected;
    const int64_t begin = expected.len;
    const std::vector<std::byte> window(static_cast<size_t>(count * layout_.window_row_bytes()),
                                        std::byte{mark});
    const std::vector<float> group(static_cast<size_t>(count * 2 * kHead), mark);
    const std::vector<int32_t> classes(static_cast<size_t>(count), mark);
    const std::vector<StepWrites::Rows> rings(kRings, {window.data(), begin, count});
    const int64_t fresh = std::max(begin, expected.entries_len);
    const std::vector<StepWrites::Rows> groups = {
        {reinterpret_cast<const std::byte*>(group.data()), fresh,
         std::max<int64_t>(0, begin + count - fresh)},
        {}};
    sequence.state.Commit(
        {.num_tokens = count, .rings = rings, .groups = groups, .classes = classes.data()});
    for (auto& ring : expected.window) ring.resize(static_cast<size_t>(begin + count), mark);
    expected.classes.resize(static_cast<size_t>(begin + count), mark);
    expected.len = begin + count;
    expected.entries_len = std::max(expected.entries_len, expected.len);
    expected.first_rollback = std::max(expected.first_rollback, expected.len - kMaxRollback);
  }

  void Rollback(Sequence& sequence) {
    Expected& expected = sequence.expected;
    const int64_t most = std::max<int64_t>(0, expected.len - expected.first_rollback);
    EXPECT_EQ(sequence.state.max_rollback(), most);
    const int64_t count = most == 0 ? 0 : 1 + Draw(static_cast<uint32_t>(most));
    if (count == 0) return;
    ++counts_["roll back"];
    sequence.state.Rollback(count);
    expected.len -= count;
    expected.entries_len = expected.len;
    for (auto& ring : expected.window) ring.resize(static_cast<size_t>(expected.len));
    expected.classes.resize(static_cast<size_t>(expected.len));
    expected.entries[0].resize(static_cast<size_t>(expected.len / 2));
    expected.entries[1].resize(static_cast<size_t>(expected.len));
  }

  void Fork() {
    if (Full()) return;
    ++counts_["fork"];
    const int64_t in_use = pool_.num_in_use();
    const Sequence& from = Pick();
    Sequence copy{from.state.Fork(), from.expected};
    EXPECT_EQ(pool_.num_in_use(), in_use);
    sequences_.push_back(std::move(copy));
  }

  // The blocks of an even prefix; at the state's own length its windows too.
  void Cache(Sequence& from) {
    const Expected& expected = from.expected;
    if (expected.entries_len < 2 || cached_.size() == 4) return;
    ++counts_["cache"];
    const bool whole = expected.len == expected.entries_len && expected.len % 2 == 0;
    const int64_t len = whole && Draw(2) == 0
                            ? expected.len
                            : 2 + 2 * Draw(static_cast<uint32_t>(expected.entries_len / 2));
    if (len > expected.len) return;  // class ids are needed up to its end
    Cached entry{from.state.ShareBlocks(len), std::nullopt, expected};
    if (len == expected.len && whole) entry.windows = from.state.CaptureWindows();
    entry.expected.len = len;
    entry.expected.entries_len = len;
    entry.expected.entries[0].resize(static_cast<size_t>(len / 2));
    entry.expected.entries[1].resize(static_cast<size_t>(len));
    cached_.push_back(std::move(entry));
  }

  void FromPrefix() {
    if (cached_.empty() || Full()) return;
    ++counts_["from prefix"];
    const Cached& hit = cached_[Draw(static_cast<uint32_t>(cached_.size()))];
    const int64_t len = hit.expected.len;
    ReplayRecord replay{ReplayRecord::Kind::kSnapshot, len};
    if (!hit.windows || Draw(2) == 0) {
      const bool bounded = Draw(2) == 0;
      replay = {bounded ? ReplayRecord::Kind::kBounded : ReplayRecord::Kind::kExact,
                std::max<int64_t>(0, len - (bounded ? kWindow : 2 * kWindow))};
    }
    const bool snapshot = replay.kind == ReplayRecord::Kind::kSnapshot;
    Expected expected = hit.expected;
    expected.len = replay.start;
    expected.first_rollback = len;
    expected.classes.resize(static_cast<size_t>(replay.start));
    for (int ring = 0; ring < kRings; ++ring) {
      auto& rows = expected.window[ring];
      rows.resize(static_cast<size_t>(replay.start));
      const bool restored = snapshot && ring < layout_.num_encoder_rings();
      const int64_t known = restored ? hit.windows->first_pos : replay.start;
      std::fill_n(rows.begin(), known, kUnknown);
    }
    expected.encoder_floor = 0;
    if (replay.kind == ReplayRecord::Kind::kBounded) expected.encoder_floor = replay.start;
    if (snapshot && hit.windows->first_pos > len - kWindow) {
      expected.encoder_floor = hit.windows->first_pos;
    }
    SequenceState state = SequenceState::FromPrefix({.len = len,
                                                     .blocks = hit.blocks,
                                                     .windows = snapshot ? &*hit.windows : nullptr,
                                                     .replay = replay},
                                                    expected.classes, layout_, pool_);
    EXPECT_EQ(state.floors.encoder, std::max<int64_t>(0, expected.encoder_floor));
    sequences_.push_back({std::move(state), std::move(expected)});
  }

  void SetAside() {
    const size_t at = Draw(static_cast<uint32_t>(sequences_.size()));
    Sequence& sequence = sequences_[at];
    const int64_t used = memory_.used();
    Result<SetAsideState> bytes = memory_.Keep(sequence.state, identity_);
    if (!bytes.ok()) {
      ++counts_["no memory"];
      EXPECT_EQ(bytes.status().code(), ErrorCode::kResourceExhausted);
      EXPECT_EQ(memory_.used(), used);
      return;
    }
    ++counts_["set aside"];
    EXPECT_EQ(memory_.used(), used + bytes->size());
    EXPECT_LE(bytes->size(), SetAsideBytes(layout_, bytes->num_blocks()));
    const int64_t in_use = pool_.num_in_use();
    const int64_t freed = sequence.state.num_exclusive_blocks();
    away_.push_back({*std::move(bytes), std::move(sequence.expected)});
    sequences_.erase(sequences_.begin() + static_cast<int64_t>(at));
    EXPECT_EQ(pool_.num_in_use(), in_use - freed);
  }

  void Restore() {
    if (away_.empty() || Full()) return;
    const size_t at = Draw(static_cast<uint32_t>(away_.size()));
    Away& away = away_[at];
    const int64_t free = pool_.num_free();
    Result<SequenceState> state = away.bytes.Restore(identity_, layout_, pool_);
    EXPECT_EQ(state.ok(), away.bytes.num_blocks() <= free);
    if (!state.ok()) {
      ++counts_["no blocks"];
      EXPECT_EQ(pool_.num_free(), free);
      return;
    }
    ++counts_["restore"];
    Expected expected = std::move(away.expected);
    expected.first_rollback = expected.entries_len;
    for (int ring = 0; ring < kRings; ++ring) {
      const int64_t floor = ring < layout_.num_encoder_rings() ? expected.encoder_floor : 0;
      const int64_t oldest = std::clamp<int64_t>(expected.len - kWindow, 0, expected.len);
      std::fill_n(expected.window[ring].begin(), std::max(oldest, std::min(floor, expected.len)),
                  kUnknown);
    }
    sequences_.push_back({*std::move(state), std::move(expected)});
    away_.erase(away_.begin() + static_cast<int64_t>(at));
  }

  void CheckAll() const {
    std::map<int32_t, int32_t> held;
    for (const Sequence& sequence : sequences_) {
      EXPECT_TRUE(sequence.state.CheckIntegrity());
      for (const BlockRef& block : sequence.state.blocks()) ++held[block.id()];
      CheckContent(sequence);
    }
    for (const Cached& cached : cached_) {
      for (const BlockRef& block : cached.blocks) ++held[block.id()];
      CheckCached(cached);
    }
    EXPECT_EQ(pool_.num_in_use(), static_cast<int64_t>(held.size()));
    const auto counted = [&](const BlockRef& block) {
      EXPECT_EQ(block.ref_count(), held[block.id()]) << "block " << block.id();
    };
    for (const Sequence& sequence : sequences_) {
      for (const BlockRef& block : sequence.state.blocks()) counted(block);
    }
    for (const Cached& cached : cached_) {
      for (const BlockRef& block : cached.blocks) counted(block);
    }
  }

  static bool IsFilled(const std::byte* row, int64_t bytes, int mark) {
    return row[0] == static_cast<std::byte>(mark) && row[bytes - 1] == static_cast<std::byte>(mark);
  }

  void CheckContent(const Sequence& sequence) const {
    const SequenceState& state = sequence.state;
    const Expected& expected = sequence.expected;
    ASSERT_EQ(state.len(), expected.len);
    ASSERT_EQ(state.entries_len(), expected.entries_len);
    for (int s = 0; s < 2; ++s) {
      const auto& marks = expected.entries[s];
      ASSERT_EQ(static_cast<int64_t>(marks.size()),
                expected.entries_len / layout_.sections()[static_cast<size_t>(s)].ratio);
      for (size_t i = 0; i < marks.size(); ++i) {
        const auto entry = static_cast<int64_t>(i);
        ASSERT_TRUE(IsFilled(state.KvRows(s).Row(entry), layout_.kv_row_bytes(), marks[i]) &&
                    IsFilled(state.IndexKeys(s).Row(entry), layout_.key_row_bytes(), marks[i]))
            << "section " << s << " entry " << i << " of " << marks.size();
      }
    }
    for (int64_t pos = std::max<int64_t>(0, expected.len - kWindow); pos < expected.len; ++pos) {
      for (int ring = 0; ring < kRings; ++ring) {
        const int mark = expected.window[ring][static_cast<size_t>(pos)];
        const std::byte* row =
            state.Ring(ring) + pos % layout_.ring_rows() * layout_.window_row_bytes();
        ASSERT_TRUE(mark == kUnknown || IsFilled(row, layout_.window_row_bytes(), mark))
            << "ring " << ring << " position " << pos << " of " << expected.len;
      }
    }
    for (int64_t pos = std::max<int64_t>(0, expected.len - 3); pos < expected.len; ++pos) {
      ASSERT_EQ(state.ClassAt(pos), expected.classes[static_cast<size_t>(pos)]) << pos;
    }
    if (expected.len % 2 == 1 && expected.len == expected.entries_len) {
      ASSERT_EQ(state.GroupRow(0, expected.len - 1)[0],
                static_cast<float>(expected.classes.back()));
    }
  }

  // Nobody writes into what a cache holds.
  void CheckCached(const Cached& cached) const {
    const KvSection& section = layout_.sections()[1];
    const auto& marks = cached.expected.entries[1];
    for (size_t i = 0; i < marks.size(); ++i) {
      const std::byte* row = cached.blocks[i / kBlockTokens].data() + section.rows_offset +
                             static_cast<int64_t>(i % kBlockTokens) * layout_.kv_row_bytes();
      ASSERT_TRUE(IsFilled(row, layout_.kv_row_bytes(), marks[i])) << "cached entry " << i;
    }
  }

  uint64_t seed_;
  uint32_t next_random_ = 0;
  const KvLayout layout_{SmallShape()};
  const StateIdentity identity_{.fingerprint = {9}, .numerics_id = "model"};
  BlockPool pool_ = *BlockPool::Create(layout_.block_bytes(), 24);
  SetAsideMemory memory_{6 * layout_.block_bytes() + 4 * layout_.fixed_bytes()};
  std::vector<Sequence> sequences_;
  std::vector<Cached> cached_;
  std::vector<Away> away_;
  std::map<std::string, int> counts_;
};

class SequenceStateModelTest : public testing::TestWithParam<uint64_t> {};

TEST_P(SequenceStateModelTest, RandomOperationsLeaveWhatTheModelSays) {
  Machine machine(GetParam());
  machine.Run(3000);
  for (const char* what : {"new", "append", "abandon", "roll back", "fork", "cache", "from prefix",
                           "set aside", "restore", "drop", "evict", "no blocks", "no memory"}) {
    const auto found = machine.counts().find(what);
    EXPECT_TRUE(found != machine.counts().end() && found->second >= 10) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SequenceStateModelTest, testing::Range<uint64_t>(1, 7));

}  // namespace
}  // namespace deepinfer
