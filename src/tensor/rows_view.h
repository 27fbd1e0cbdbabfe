// Where the rows of a KV cache lie: small views that kernels walk, without owning or knowing a
// cache.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepinfer {

// How one cached row of `dim` values is stored (model.md sections 4, 6, 7.1;
// docs/formats/kv-rows.md).
enum class RowFormat : uint8_t {
  kF32,      // dim floats: --numerics fp32
  kFp8E8M0,  // window KV:     dim e4m3 codes, then dim/32 e8m0 scales
  kFp4E8M0,  // index key:     dim/2 bytes of e2m1 pairs (low nibble = even), then dim/32 e8m0
             // scales
  kFp4E4M3,  // compressed KV: dim/2 bytes of e2m1 pairs, then dim/16 e4m3 scales
};

constexpr int64_t RowBytes(RowFormat format, int64_t dim) {
  switch (format) {
    case RowFormat::kF32:
      return dim * 4;
    case RowFormat::kFp8E8M0:
      return dim + dim / 32;
    case RowFormat::kFp4E8M0:
      return dim / 2 + dim / 32;
    case RowFormat::kFp4E4M3:
      return dim / 2 + dim / 16;
  }
  return 0;
}

// Window rows of one layer of one sequence during a step: a ring of committed rows and the rows
// that this step has written so far.  The row of position p is
//   fresh + (p - fresh_begin) * row_bytes             for p >= fresh_begin
//   ring  + (p mod ring_rows) * row_bytes             for p <  fresh_begin
struct WindowView {
  const std::byte* ring;   // [ring_rows, row_bytes]
  const std::byte* fresh;  // [rows of this step, row_bytes]
  int64_t fresh_begin;     // position of the step's first row = number of committed positions
  int64_t floor;           // positions below it do not exist for attention (section 7.7)
  int32_t ring_rows;
  int32_t row_bytes;

  const std::byte* Row(int64_t pos) const {
    return pos >= fresh_begin ? fresh + (pos - fresh_begin) * row_bytes
                              : ring + (pos % ring_rows) * row_bytes;
  }
};

// Compressed rows (KV or index keys) of one source layer of one sequence, in 128-token blocks:
// entry j lies at blocks[j / entries_per_block] + offset + (j mod entries_per_block) * row_bytes.
struct BlockRowsView {
  std::byte* const* blocks;  // block table: one base address per 128 tokens
  int64_t offset;            // bytes from a block's base to this section
  int32_t entries_per_block;
  int32_t row_bytes;

  std::byte* Row(int64_t entry) const {
    return blocks[entry / entries_per_block] + offset + (entry % entries_per_block) * row_bytes;
  }
};

}  // namespace deepinfer
