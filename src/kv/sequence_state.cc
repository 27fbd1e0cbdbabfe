#include "kv/sequence_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace deepinfer {
namespace {

int64_t BlocksFor(int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

}  // namespace

SequenceState::SequenceState(const KvLayout& layout, BlockPool& pool)
    : layout_(&layout),
      pool_(&pool),
      rings_(static_cast<size_t>(layout.num_rings() * layout.ring_bytes())),
      history_(static_cast<size_t>(layout.history_rows())) {
  blocks_.reserve(static_cast<size_t>(layout.max_blocks()));
  block_table_.reserve(static_cast<size_t>(layout.max_blocks()));
  for (const KvSection& section : layout.sections()) {
    const int64_t rows = section.ratio > 1 ? layout.group_rows(section.ratio) : 0;
    groups_.emplace_back(static_cast<size_t>(rows * 2 * layout.shape().head_dim));
  }
}

SequenceState SequenceState::FromPrefix(const CachedPrefix& hit, std::span<const int32_t> classes,
                                        const KvLayout& layout, BlockPool& pool) {
  CHECK_GT(hit.len, 0);
  CHECK_EQ(static_cast<int64_t>(hit.blocks.size()), BlocksFor(hit.len));
  for (const KvSection& section : layout.sections()) CHECK_EQ(hit.len % section.ratio, 0);
  const int64_t start = hit.replay.start;
  CHECK_LE(start, hit.len);
  const auto look_back = std::min<int64_t>(layout.shape().ngram_look_back, start);
  CHECK_LE(look_back, static_cast<int64_t>(classes.size()));

  SequenceState state(layout, pool);
  for (const BlockRef& block : hit.blocks) state.AppendBlock(block.Share());
  state.len_ = start;
  state.entries_len_ = hit.len;
  state.first_rollback_ = hit.len;
  state.replay = hit.replay;
  for (int64_t back = 1; back <= look_back; ++back) {
    state.history_[static_cast<size_t>((start - back) % layout.history_rows())] =
        classes[classes.size() - static_cast<size_t>(back)];
  }
  // Before an exact replay no floor is set: its first rows see zeros where rows are missing, and no
  // row that is used sees theirs.
  if (hit.replay.kind == ReplayRecord::Kind::kBounded) state.floors.encoder = start;
  if (hit.windows != nullptr) {
    CHECK_EQ(hit.windows->pos, hit.len);
    CHECK_EQ(start, hit.len);
    state.RestoreWindows(*hit.windows);
  }
  return state;
}

void SequenceState::RestoreWindows(const WindowSnapshot& windows) {
  const auto row_bytes = static_cast<size_t>(layout_->window_row_bytes());
  const int64_t count = windows.pos - windows.first_pos;
  CHECK_EQ(windows.rows.size(),
           static_cast<size_t>(layout_->num_encoder_rings() * count) * row_bytes);
  const std::byte* row = windows.rows.data();
  for (int ring = 0; ring < layout_->num_encoder_rings(); ++ring) {
    for (int64_t pos = windows.first_pos; pos < windows.pos; ++pos, row += row_bytes) {
      std::memcpy(RingSlot(ring, pos), row, row_bytes);
    }
  }
  const bool whole = windows.first_pos <= windows.pos - layout_->shape().window_size;
  floors.encoder = whole ? 0 : windows.first_pos;
}

WindowSnapshot SequenceState::CaptureWindows() const {
  const auto row_bytes = static_cast<size_t>(layout_->window_row_bytes());
  const int64_t oldest = std::max<int64_t>(0, len_ - layout_->shape().window_size);
  WindowSnapshot windows{.pos = len_, .first_pos = std::max(oldest, floors.encoder), .rows = {}};
  const auto rings = static_cast<size_t>(layout_->num_encoder_rings());
  windows.rows.resize(rings * static_cast<size_t>(len_ - windows.first_pos) * row_bytes);
  std::byte* row = windows.rows.data();
  for (int ring = 0; ring < layout_->num_encoder_rings(); ++ring) {
    for (int64_t pos = windows.first_pos; pos < len_; ++pos, row += row_bytes) {
      std::memcpy(row, Ring(ring) + pos % layout_->ring_rows() * layout_->window_row_bytes(),
                  row_bytes);
    }
  }
  return windows;
}

std::vector<BlockRef> SequenceState::ShareBlocks(int64_t num_tokens) const {
  CHECK_LE(num_tokens, entries_len_);
  std::vector<BlockRef> shared;
  for (int64_t i = 0; i < BlocksFor(num_tokens); ++i) {
    shared.push_back(blocks_[static_cast<size_t>(i)].Share());
  }
  return shared;
}

BlockRowsView SequenceState::KvRows(int section) const {
  const KvSection& s = layout_->sections()[static_cast<size_t>(section)];
  return {.blocks = block_table_.data(),
          .offset = s.rows_offset,
          .entries_per_block = s.entries,
          .row_bytes = static_cast<int32_t>(layout_->kv_row_bytes())};
}

BlockRowsView SequenceState::IndexKeys(int section) const {
  const KvSection& s = layout_->sections()[static_cast<size_t>(section)];
  return {.blocks = block_table_.data(),
          .offset = s.keys_offset,
          .entries_per_block = s.entries,
          .row_bytes = static_cast<int32_t>(layout_->key_row_bytes())};
}

std::byte* SequenceState::RingSlot(int ring, int64_t pos) {
  return rings_.data() + ring * layout_->ring_bytes() +
         pos % layout_->ring_rows() * layout_->window_row_bytes();
}

float* SequenceState::GroupSlot(int section, int64_t pos) {
  const int rows = layout_->group_rows(layout_->sections()[static_cast<size_t>(section)].ratio);
  return groups_[static_cast<size_t>(section)].data() + pos % rows * 2 * layout_->shape().head_dim;
}

const float* SequenceState::GroupRow(int section, int64_t pos) const {
  DCHECK(pos < len_);
  return const_cast<SequenceState*>(this)->GroupSlot(section, pos);
}

int32_t SequenceState::ClassAt(int64_t pos) const {
  DCHECK(pos >= 0 && pos < len_ && pos >= len_ - layout_->history_rows());
  return history_[static_cast<size_t>(pos % layout_->history_rows())];
}

void SequenceState::AppendBlock(BlockRef block) {
  block_table_.push_back(block.data());
  blocks_.push_back(std::move(block));
}

bool SequenceState::WritesSharedTail(int64_t num_tokens) const {
  const auto tail = static_cast<size_t>(entries_len_ / kBlockTokens);  // first that is written
  return len_ + num_tokens > entries_len_ && tail < blocks_.size() && !blocks_[tail].IsExclusive();
}

int64_t SequenceState::BlocksToReserve(int64_t num_tokens) const {
  return std::max<int64_t>(0, BlocksFor(len_ + num_tokens) - num_blocks()) +
         (WritesSharedTail(num_tokens) ? 1 : 0);
}

int64_t SequenceState::num_exclusive_blocks() const {
  return std::ranges::count_if(blocks_, [](const BlockRef& block) { return block.IsExclusive(); });
}

Status SequenceState::Reserve(int64_t num_tokens) {
  const int64_t needed = BlocksFor(len_ + num_tokens);
  const int64_t wanted = BlocksToReserve(num_tokens);
  if (wanted > pool_->num_free()) {
    return ResourceExhausted(
        fmt::format("found {} free KV blocks of {} tokens, expected {} to extend a sequence of {} "
                    "tokens by {}",
                    pool_->num_free(), kBlockTokens, wanted, len_, num_tokens));
  }
  if (WritesSharedTail(num_tokens)) {
    const auto tail = static_cast<size_t>(entries_len_ / kBlockTokens);
    BlockRef copy = *pool_->Allocate();
    std::memcpy(copy.data(), blocks_[tail].data(), static_cast<size_t>(layout_->block_bytes()));
    block_table_[tail] = copy.data();
    blocks_[tail] = std::move(copy);
  }
  while (static_cast<int64_t>(blocks_.size()) < needed) AppendBlock(*pool_->Allocate());
  return Status::Ok();
}

void SequenceState::Commit(const StepWrites& writes) {
  CHECK_EQ(static_cast<int>(writes.rings.size()), layout_->num_rings());
  CHECK_EQ(writes.groups.size(), groups_.size());
  const int64_t end = len_ + writes.num_tokens;
  CHECK_LE(BlocksFor(end), static_cast<int64_t>(blocks_.size()));
  const auto row_bytes = static_cast<size_t>(layout_->window_row_bytes());
  for (size_t ring = 0; ring < writes.rings.size(); ++ring) {
    const StepWrites::Rows& rows = writes.rings[ring];
    const int64_t last = rows.first_pos + rows.count;
    for (int64_t pos = std::max(rows.first_pos, last - layout_->ring_rows()); pos < last; ++pos) {
      std::memcpy(RingSlot(static_cast<int>(ring), pos),
                  rows.data + static_cast<size_t>(pos - rows.first_pos) * row_bytes, row_bytes);
    }
  }
  const size_t group_bytes = static_cast<size_t>(layout_->shape().head_dim) * 2 * sizeof(float);
  for (size_t s = 0; s < groups_.size(); ++s) {
    const StepWrites::Rows& rows = writes.groups[s];
    const int64_t last = rows.first_pos + rows.count;
    const int64_t kept = layout_->group_rows(layout_->sections()[s].ratio);
    for (int64_t pos = std::max(rows.first_pos, last - kept); pos < last; ++pos) {
      std::memcpy(GroupSlot(static_cast<int>(s), pos),
                  rows.data + static_cast<size_t>(pos - rows.first_pos) * group_bytes, group_bytes);
    }
  }
  const int64_t history = layout_->history_rows();
  for (int64_t pos = std::max(len_, end - history); history > 0 && pos < end; ++pos) {
    history_[static_cast<size_t>(pos % history)] = writes.classes[pos - len_];
  }
  len_ = end;
  entries_len_ = std::max(entries_len_, len_);
  first_rollback_ = std::max(first_rollback_, len_ - kMaxRollback);
}

void SequenceState::Rollback(int64_t num_tokens) {
  CHECK_GE(num_tokens, 0);
  CHECK_LE(num_tokens, max_rollback());
  len_ -= num_tokens;
  entries_len_ = len_;
  while (static_cast<int64_t>(blocks_.size()) > BlocksFor(len_)) {
    blocks_.pop_back();
    block_table_.pop_back();
  }
}

SequenceState SequenceState::Fork() const {
  SequenceState copy(*layout_, *pool_);
  copy.len_ = len_;
  copy.entries_len_ = entries_len_;
  copy.first_rollback_ = first_rollback_;
  copy.rings_ = rings_;
  copy.groups_ = groups_;
  copy.history_ = history_;
  for (BlockRef& block : ShareBlocks(entries_len_)) copy.AppendBlock(std::move(block));
  copy.prompt_len = prompt_len;
  copy.floors = floors;
  copy.replay = replay;
  copy.sampler_bytes = sampler_bytes;
  copy.penalty_bytes = penalty_bytes;
  copy.grammar_bytes = grammar_bytes;
  return copy;
}

bool SequenceState::CheckIntegrity() const {
  if (len_ < 0 || entries_len_ < len_) return false;
  if (first_rollback_ < 0 || first_rollback_ > entries_len_) return false;
  if (prompt_len < 0 || floors.encoder > len_ || floors.decoder > prompt_len) return false;
  return BlocksAreIntact() && pool_->CheckIntegrity();
}

// Every block once and in use, the table behind them, and none beyond the entries shared: a step
// writes there.
bool SequenceState::BlocksAreIntact() const {
  if (num_blocks() < BlocksFor(entries_len_) || blocks_.size() != block_table_.size()) return false;
  std::vector<int32_t> ids;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].data() != block_table_[i] || blocks_[i].ref_count() < 1) return false;
    const bool reserved = static_cast<int64_t>(i) >= BlocksFor(entries_len_);
    if (reserved && !blocks_[i].IsExclusive()) return false;
    ids.push_back(blocks_[i].id());
  }
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end();
}

}  // namespace deepinfer
