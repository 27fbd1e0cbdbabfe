#include "kv/block_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace deepinfer {

BlockRef::~BlockRef() {
  if (pool_ == nullptr) return;
  int32_t& count = pool_->ref_counts_[static_cast<size_t>(id_)];
  CHECK_GT(count, 0);
  if (--count == 0) pool_->free_list_.push_back(id_);
}

BlockRef BlockRef::Share() const {
  ++pool_->ref_counts_[static_cast<size_t>(id_)];
  return BlockRef(pool_, id_);
}

std::byte* BlockRef::data() const { return pool_->base_ + id_ * pool_->block_bytes_; }

int32_t BlockRef::ref_count() const { return pool_->ref_counts_[static_cast<size_t>(id_)]; }

Result<BlockPool> BlockPool::Create(int64_t block_bytes, int64_t num_blocks) {
  CHECK_GT(block_bytes, 0);
  CHECK_GT(num_blocks, 0);
  void* base = mmap(nullptr, static_cast<size_t>(block_bytes * num_blocks), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return ResourceExhausted(fmt::format("cannot reserve {} KV blocks of {} bytes: {}", num_blocks,
                                         block_bytes, std::strerror(errno)));
  }
  return BlockPool(static_cast<std::byte*>(base), block_bytes, num_blocks);
}

BlockPool::BlockPool(std::byte* base, int64_t block_bytes, int64_t num_blocks)
    : base_(base), block_bytes_(block_bytes), ref_counts_(static_cast<size_t>(num_blocks), 0) {
  free_list_.reserve(ref_counts_.size());
  for (int64_t id = num_blocks - 1; id >= 0; --id) free_list_.push_back(static_cast<int32_t>(id));
}

BlockPool::BlockPool(BlockPool&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      block_bytes_(other.block_bytes_),
      ref_counts_(std::move(other.ref_counts_)),
      free_list_(std::move(other.free_list_)) {
  // A BlockRef points at its pool, so a pool moves only before it is used.
  CHECK_EQ(free_list_.size(), ref_counts_.size());
}

BlockPool::~BlockPool() {
  if (base_ == nullptr) return;
  CHECK_EQ(num_in_use(), 0);
  munmap(base_, static_cast<size_t>(block_bytes_ * num_blocks()));
}

std::optional<BlockRef> BlockPool::Allocate() {
  if (free_list_.empty()) return std::nullopt;
  const int32_t id = free_list_.back();
  free_list_.pop_back();
  CHECK_EQ(ref_counts_[static_cast<size_t>(id)], 0);
  ref_counts_[static_cast<size_t>(id)] = 1;
  return BlockRef(this, id);
}

bool BlockPool::CheckIntegrity() const {
  std::vector<bool> on_list(ref_counts_.size(), false);
  for (const int32_t id : free_list_) {
    if (id < 0 || static_cast<size_t>(id) >= ref_counts_.size()) return false;
    if (on_list[static_cast<size_t>(id)]) return false;
    on_list[static_cast<size_t>(id)] = true;
  }
  for (size_t id = 0; id < ref_counts_.size(); ++id) {
    if (ref_counts_[id] < 0 || on_list[id] != (ref_counts_[id] == 0)) return false;
  }
  return true;
}

}  // namespace deepinfer
