// Memory outside the block pool for states whose blocks others need: the bytes of each state
// (docs/formats/sequence-state.md), all of them together within a budget.
//
// Not thread-safe: only the step thread touches it.  Must outlive its SetAsideStates.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"
#include "kv/sequence_state.h"

namespace deepinfer {

class SetAsideMemory;

// Bytes that a state with so many blocks takes there, at most.
int64_t SetAsideBytes(const KvLayout& layout, int64_t num_blocks);

// One state outside the pool; its bytes return to the budget with it.  Move-only.
class SetAsideState {
 public:
  SetAsideState(SetAsideState&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        num_blocks_(other.num_blocks_),
        bytes_(std::move(other.bytes_)) {}
  SetAsideState& operator=(SetAsideState&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(num_blocks_, other.num_blocks_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SetAsideState();

  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  // Blocks that Restore() takes from the pool.
  int64_t num_blocks() const { return num_blocks_; }
  // The state as it was, bit for bit; this object stays as it is.  ResourceExhausted when the pool
  // has too few blocks, CorruptData when the identity or the layout is another one.
  Result<SequenceState> Restore(const StateIdentity& identity, const KvLayout& layout,
                                BlockPool& pool) const {
    return SequenceState::Deserialize(bytes_, identity, layout, pool);
  }

 private:
  friend class SetAsideMemory;
  SetAsideState(SetAsideMemory& memory, int64_t num_blocks, std::string bytes)
      : memory_(&memory), num_blocks_(num_blocks), bytes_(std::move(bytes)) {}

  SetAsideMemory* memory_;
  int64_t num_blocks_;
  std::string bytes_;
};

class SetAsideMemory {
 public:
  explicit SetAsideMemory(int64_t capacity) : capacity_(capacity) {}
  SetAsideMemory(const SetAsideMemory&) = delete;
  SetAsideMemory& operator=(const SetAsideMemory&) = delete;
  ~SetAsideMemory();

  // A copy of the state, which stays as it is and may be dropped.  ResourceExhausted, with nothing
  // copied, when the bytes do not fit into what is left.
  Result<SetAsideState> Keep(const SequenceState& state, const StateIdentity& identity);

  int64_t capacity() const { return capacity_; }
  int64_t used() const { return used_; }

 private:
  friend class SetAsideState;

  int64_t capacity_;  // bytes
  int64_t used_ = 0;  // bytes of the SetAsideStates that live
};

}  // namespace deepinfer
