// KV blocks of one process, all the same size, in one anonymous mapping made at start; a page of it
// costs memory once it is written.
//
// Every block is in exactly one state:
//   free     ref_count == 0, on the free list
//   in use   ref_count > 0, held by that many BlockRefs
// num_free() + num_in_use() == num_blocks().
//
// Not thread-safe: only the step thread touches it.  Must outlive its BlockRefs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace deepinfer {

class BlockPool;

// One reference to a block, released on destruction.  Move-only; Share() makes another.
class BlockRef {
 public:
  BlockRef(BlockRef&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_) {}
  BlockRef& operator=(BlockRef&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~BlockRef();

  BlockRef Share() const;
  std::byte* data() const;
  int32_t id() const { return id_; }
  // References to this block, this one included.
  int32_t ref_count() const;
  // Held by nobody else, so its bytes may be written.
  bool IsExclusive() const { return ref_count() == 1; }

 private:
  friend class BlockPool;
  BlockRef(BlockPool* pool, int32_t id) : pool_(pool), id_(id) {}

  BlockPool* pool_;
  int32_t id_;
};

class BlockPool {
 public:
  static Result<BlockPool> Create(int64_t block_bytes, int64_t num_blocks);
  BlockPool(BlockPool&& other) noexcept;
  BlockPool& operator=(BlockPool&&) = delete;
  ~BlockPool();

  // Empty when no block is free.  The bytes of a fresh block are unspecified.
  std::optional<BlockRef> Allocate();

  int64_t block_bytes() const { return block_bytes_; }
  int64_t num_blocks() const { return static_cast<int64_t>(ref_counts_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_list_.size()); }
  int64_t num_in_use() const { return num_blocks() - num_free(); }

  // Whether counts, free list and states agree.
  bool CheckIntegrity() const;

 private:
  friend class BlockRef;
  BlockPool(std::byte* base, int64_t block_bytes, int64_t num_blocks);

  std::byte* base_;
  int64_t block_bytes_;
  std::vector<int32_t> ref_counts_;  // [num_blocks]
  std::vector<int32_t> free_list_;   // the last one is handed out next
};

}  // namespace deepinfer
