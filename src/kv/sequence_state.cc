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
  for (const KvSection& section : layout.sections()) {
    const int64_t rows = section.ratio > 1 ? layout.group_rows(section.ratio) : 0;
    groups_.emplace_back(static_cast<size_t>(rows * 2 * layout.shape().head_dim));
  }
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

Status SequenceState::Reserve(int64_t num_tokens) {
  const int64_t needed = BlocksFor(len_ + num_tokens);
  const int64_t held = static_cast<int64_t>(blocks_.size());
  const auto tail = static_cast<size_t>(len_ / kBlockTokens);  // first block that is written
  const bool copy_tail = tail < blocks_.size() && !blocks_[tail].IsExclusive();
  const int64_t wanted = std::max<int64_t>(0, needed - held) + (copy_tail ? 1 : 0);
  if (wanted > pool_->num_free()) {
    return ResourceExhausted(
        fmt::format("found {} free KV blocks of {} tokens, expected {} to extend a sequence of {} "
                    "tokens by {}",
                    pool_->num_free(), kBlockTokens, wanted, len_, num_tokens));
  }
  if (copy_tail) {
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
}

void SequenceState::Rollback(int64_t num_tokens) {
  CHECK_LE(num_tokens, std::min<int64_t>(len_, kMaxRollback));
  len_ -= num_tokens;
  while (static_cast<int64_t>(blocks_.size()) > BlocksFor(len_)) {
    blocks_.pop_back();
    block_table_.pop_back();
  }
}

SequenceState SequenceState::Fork() const {
  SequenceState copy(*layout_, *pool_);
  copy.len_ = len_;
  copy.rings_ = rings_;
  copy.groups_ = groups_;
  copy.history_ = history_;
  for (int64_t i = 0; i < BlocksFor(len_); ++i) {
    copy.AppendBlock(blocks_[static_cast<size_t>(i)].Share());
  }
  copy.prompt_len = prompt_len;
  copy.floors = floors;
  copy.replay = replay;
  copy.sampler_bytes = sampler_bytes;
  copy.penalty_bytes = penalty_bytes;
  copy.grammar_bytes = grammar_bytes;
  return copy;
}

bool SequenceState::CheckIntegrity() const {
  if (static_cast<int64_t>(blocks_.size()) < BlocksFor(len_)) return false;
  if (blocks_.size() != block_table_.size()) return false;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].data() != block_table_[i]) return false;
  }
  return floors.encoder <= len_ && prompt_len >= 0 && pool_->CheckIntegrity();
}

}  // namespace deepinfer
