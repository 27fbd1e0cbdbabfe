// Bytes of everything a sequence keeps between steps (model.md section 13), computed once from the
// model's shape.  Knows sizes and offsets, holds no memory.
//
// Per sequence, fixed:      window rings, open compressor groups, n-gram look-back.
// Per 128 tokens, a block:  for every KV source, its compressed rows, then its index keys:
//
//   block  | source 0 KV rows | source 0 keys | source 1 KV rows | source 1 keys | ...
//          each [128 / ratio entries, row bytes]
//
// At the released dimensions a block is 113,920 bytes, 890 per token.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/rows_view.h"

namespace deepinfer {

// Tokens whose compressed entries share one block.
inline constexpr int kBlockTokens = 128;
// Tokens that a sequence can be rolled back by: two verify widths of 6, and room.
inline constexpr int kMaxRollback = 16;

// A layer that owns compressed KV and index keys.
struct KvSourceShape {
  int layer;
  int ratio;  // tokens per entry; divides kBlockTokens
};

struct KvShape {
  int num_layers = 0;       // backbone layers, each with a window ring
  int num_draft_rings = 0;  // window rings of the draft blocks
  int window_size = 0;
  int head_dim = 0;
  int index_head_dim = 0;
  int ngram_look_back =
      0;  // earlier class ids that the n-gram hash reads (order - 1); 0: no memory
  std::vector<KvSourceShape> sources;
  bool fp32_rows = false;  // --numerics fp32
};

// Where one source's entries lie inside a block.
struct KvSection {
  int layer;
  int ratio;
  int entries;          // per block
  int64_t rows_offset;  // compressed KV rows
  int64_t keys_offset;  // index keys
};

class KvLayout {
 public:
  explicit KvLayout(KvShape shape);

  const KvShape& shape() const { return shape_; }
  RowFormat window_format() const { return Pick(RowFormat::kFp8E8M0); }
  RowFormat rows_format() const { return Pick(RowFormat::kFp4E4M3); }
  RowFormat keys_format() const { return Pick(RowFormat::kFp4E8M0); }
  int64_t window_row_bytes() const { return RowBytes(window_format(), shape_.head_dim); }
  int64_t kv_row_bytes() const { return RowBytes(rows_format(), shape_.head_dim); }
  int64_t key_row_bytes() const { return RowBytes(keys_format(), shape_.index_head_dim); }

  // Rows of a window ring: the window, and what a roll-back may bring back into it.
  int ring_rows() const { return shape_.window_size + kMaxRollback; }
  int num_rings() const { return shape_.num_layers + shape_.num_draft_rings; }
  int64_t ring_bytes() const { return ring_rows() * window_row_bytes(); }
  // Rings [0, num_encoder_rings()) belong to the layers up to the last KV source: what a window
  // snapshot holds and a replay rebuilds (section 7.7).  Without a source: all of them.
  int num_encoder_rings() const {
    return sections_.empty() ? num_rings() : sections_.back().layer + 1;
  }

  // Sources in ascending layer order.
  const std::vector<KvSection>& sections() const { return sections_; }
  // Index into sections(); precondition: the layer is a source.
  int SectionOf(int layer) const;
  int64_t block_bytes() const { return block_bytes_; }

  // fp32 (u, gate) rows [2, head_dim] kept per token for sources of ratio > 1: those of the open
  // group, and of the groups that a roll-back may open again.
  int group_rows(int ratio) const { return kMaxRollback + ratio; }
  // Class ids kept for the n-gram hash.
  int history_rows() const {
    return shape_.ngram_look_back == 0 ? 0 : shape_.ngram_look_back + kMaxRollback;
  }

  // Bytes of a sequence that do not grow with its length.
  int64_t fixed_bytes() const;

 private:
  RowFormat Pick(RowFormat release) const { return shape_.fp32_rows ? RowFormat::kF32 : release; }

  KvShape shape_;
  std::vector<KvSection> sections_;
  int64_t block_bytes_ = 0;
};

}  // namespace deepinfer
