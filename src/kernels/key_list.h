// The canonical key list of a query (model.md section 6), as every instruction set walks it. Always
// inlined: files compiled for different instruction sets include this header.
#pragma once

#include "kernels/kernels.h"

namespace deepinfer {

// One slot of the list.
struct KeySlot {
  const std::byte* row;  // null for an empty slot
  RowFormat format;
};

// Slot i < W is window position max(0, pos - W + 1) + i, empty beyond the query or below the floor;
// the selected entries follow.
[[gnu::always_inline]] inline KeySlot KeySlotOf(const AttentionParams& p, const AttentionRow& row,
                                                int64_t slot) {
  if (slot < p.window_size) {
    const int64_t oldest = row.pos - p.window_size + 1;
    const int64_t pos = (oldest > 0 ? oldest : 0) + slot;
    const bool empty = pos > row.pos || pos < row.window.floor;
    return {empty ? nullptr : row.window.Row(pos), p.window_format};
  }
  const int64_t i = slot - p.window_size;
  return {i < row.num_selected ? row.rows.Row(row.selected[i]) : nullptr, p.rows_format};
}

}  // namespace deepinfer
