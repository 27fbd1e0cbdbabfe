#include "kv/set_aside.h"

#include <fmt/format.h>

#include "base/check.h"

namespace deepinfer {
namespace {

// Header, tags and checksum.
constexpr int64_t kFrameBytes = 512;

}  // namespace

int64_t SetAsideBytes(const KvLayout& layout, int64_t num_blocks) {
  return kFrameBytes + layout.fixed_bytes() + num_blocks * layout.block_bytes();
}

SetAsideState::~SetAsideState() {
  if (memory_ == nullptr) return;
  memory_->used_ -= size();
  CHECK_GE(memory_->used_, 0);
}

SetAsideMemory::~SetAsideMemory() { CHECK_EQ(used_, 0); }

Result<SetAsideState> SetAsideMemory::Keep(const SequenceState& state,
                                           const StateIdentity& identity) {
  const int64_t size = state.SerializedBytes(identity);
  if (size > capacity_ - used_) {
    return ResourceExhausted(
        fmt::format("found {} of {} bytes left for sequences set aside, expected {} for one of {} "
                    "tokens",
                    capacity_ - used_, capacity_, size, state.len()));
  }
  std::string bytes = state.Serialize(identity);
  CHECK_EQ(static_cast<int64_t>(bytes.size()), size);
  used_ += size;
  const int64_t num_blocks = (state.entries_len() + kBlockTokens - 1) / kBlockTokens;
  return SetAsideState(*this, num_blocks, std::move(bytes));
}

}  // namespace deepinfer
