// The rows of consecutive entries of a block table.
#pragma once

#include "kernels/vector/lanes.h"
#include "tensor/rows_view.h"

namespace deepinfer::vector {

// Walks the rows of consecutive entries; a division per walk, a look at the block table per block.
struct RowWalk {
  const BlockRowsView& rows;
  int64_t block;
  int64_t left;  // rows of the block from `at` on
  const uint8_t* at;

  [[gnu::always_inline]] RowWalk(const BlockRowsView& view, int64_t entry)
      : rows(view), block(entry / view.entries_per_block) {
    const int64_t within = entry - block * view.entries_per_block;
    left = view.entries_per_block - within;
    at = Base() + within * view.row_bytes;
  }
  [[gnu::always_inline]] const uint8_t* Base() const {
    return reinterpret_cast<const uint8_t*>(rows.blocks[block]) + rows.offset;
  }
  // The next row, which must be there.
  [[gnu::always_inline]] const uint8_t* Next() {
    if (left == 0) {
      ++block;
      left = rows.entries_per_block;
      at = Base();
    }
    const uint8_t* row = at;
    at += rows.row_bytes;
    --left;
    return row;
  }
  // The next sixteen rows, all of which must be there.
  [[gnu::always_inline]] void Next(const uint8_t* (&out)[kLanes]) {
    if (left < kLanes) {
      for (const uint8_t*& row : out) row = Next();
      return;
    }
    for (int64_t i = 0; i < kLanes; ++i) out[i] = at + i * rows.row_bytes;
    at += kLanes * rows.row_bytes;
    left -= kLanes;
  }
};

}  // namespace deepinfer::vector
