#include "kv/layout.h"

#include <utility>

#include "base/check.h"

namespace deepinfer {

KvLayout::KvLayout(KvShape shape, int64_t max_tokens)
    : shape_(std::move(shape)), max_blocks_((max_tokens + kBlockTokens - 1) / kBlockTokens) {
  for (const KvSourceShape& source : shape_.sources) {
    CHECK_GT(source.ratio, 0);
    CHECK_EQ(kBlockTokens % source.ratio, 0);
    KvSection section{.layer = source.layer,
                      .ratio = source.ratio,
                      .entries = kBlockTokens / source.ratio,
                      .rows_offset = block_bytes_,
                      .keys_offset = 0};
    section.keys_offset = section.rows_offset + section.entries * kv_row_bytes();
    block_bytes_ = section.keys_offset + section.entries * key_row_bytes();
    sections_.push_back(section);
  }
}

int KvLayout::SectionOf(int layer) const {
  for (size_t i = 0; i < sections_.size(); ++i) {
    if (sections_[i].layer == layer) return static_cast<int>(i);
  }
  CHECK(false);
  return -1;
}

int64_t KvLayout::fixed_bytes() const {
  int64_t bytes = num_rings() * ring_bytes() + history_rows() * int64_t{4};
  for (const KvSection& section : sections_) {
    if (section.ratio > 1) bytes += int64_t{group_rows(section.ratio)} * 2 * shape_.head_dim * 4;
  }
  return bytes;
}

}  // namespace deepinfer
