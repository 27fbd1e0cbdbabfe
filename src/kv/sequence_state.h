// Everything that a sequence carries from one step to the next (model.md section 13), as one value:
// window rings, compressed rows and index keys in blocks, open compressor groups, n-gram look-back,
// draft rings, and the sampler's, penalties' and grammar's own bytes.  No other state exists.
//
// A step reads the committed part through views and writes beside it: compressed entries into
// reserved blocks past the committed length, everything else into buffers of the step, handed over
// by Commit().  A step that is abandoned simply never commits, and the state is what it was.
//
// A prefix hit starts a state from the blocks of another one (FromPrefix).  Its window rows come
// from a snapshot, or tokens before the hit run again: until len() has reached entries_len(), a
// step rebuilds window rows only and neither computes nor writes a compressed entry.
//
// Move-only; Fork() and Serialize() copy.  Not thread-safe.  Layout and pool must outlive it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kv/block_pool.h"
#include "kv/layout.h"

namespace deepinfer {

// Which model and arithmetic produced a state; bytes of one are garbage to another.
struct StateIdentity {
  std::array<uint8_t, 32> fingerprint{};  // SHA-256 over config and weights index
  std::string numerics_id;
};

// Window floors (section 7.7): rows below them do not exist for attention.
struct WindowFloors {
  int64_t encoder = 0;  // layers up to and including the first decoder layer
  int64_t decoder = 0;  // the layers after it
};

// How the windows of a prefix hit came back, for the reproducibility record.
struct ReplayRecord {
  enum class Kind : uint8_t { kNone, kSnapshot, kBounded, kExact };
  Kind kind = Kind::kNone;
  int64_t start = 0;  // first position that runs: the hit itself for a snapshot
};

// Window rows [first_pos, pos) of the encoder rings: what a continuation at pos reads of them.
struct WindowSnapshot {
  int64_t pos = 0;
  int64_t first_pos = 0;        // max(0, pos - window), later where a floor hid rows
  std::vector<std::byte> rows;  // [num_encoder_rings, pos - first_pos, window_row_bytes]
};

// The first `len` tokens of a sequence as a cache holds them.
struct CachedPrefix {
  int64_t len = 0;                          // > 0, closes the groups of every source
  std::span<const BlockRef> blocks;         // ceil(len / 128); shared, never written
  const WindowSnapshot* windows = nullptr;  // at len; null: rows from replay.start run again
  ReplayRecord replay;
};

// What a step wrote outside the blocks, valid during Commit().
struct StepWrites {
  // Rows of consecutive positions starting at first_pos.
  struct Rows {
    const std::byte* data = nullptr;
    int64_t first_pos = 0;
    int64_t count = 0;
  };
  int64_t num_tokens = 0;
  std::span<const Rows> rings;       // [num_rings] window rows
  std::span<const Rows> groups;      // [sections] float rows [2, head_dim]; empty for ratio 1
  const int32_t* classes = nullptr;  // [num_tokens]; null without n-gram memory
};

class SequenceState {
 public:
  SequenceState(const KvLayout& layout, BlockPool& pool);
  // `classes`: class ids of the positions before hit.replay.start, oldest first, at least the last
  // ngram_look_back of them (all, where there are fewer).  len() is hit.replay.start.
  static SequenceState FromPrefix(const CachedPrefix& hit, std::span<const int32_t> classes,
                                  const KvLayout& layout, BlockPool& pool);
  SequenceState(SequenceState&&) = default;
  SequenceState& operator=(SequenceState&&) = default;

  const KvLayout& layout() const { return *layout_; }
  // Tokens that the state covers; the next row has this position.
  int64_t len() const { return len_; }
  // Tokens whose compressed entries exist: len(), or the length of a prefix hit while the rows
  // before it run again.
  int64_t entries_len() const { return entries_len_; }

  // ---- views of the committed part; valid until the next non-const call ----
  const std::byte* Ring(int ring) const { return rings_.data() + ring * layout_->ring_bytes(); }
  // The floor that holds for a ring: layers up to the last KV source have the encoder's, the layers
  // after it and the draft blocks the decoder's.
  int64_t RingFloor(int ring) const {
    return ring < layout_->num_encoder_rings() ? floors.encoder : floors.decoder;
  }
  // Entries [0, entries_len/ratio) are committed; a step may write the reserved ones after them.
  BlockRowsView KvRows(int section) const;
  BlockRowsView IndexKeys(int section) const;
  // fp32 [2, head_dim] of a recent position (>= len - kMaxRollback - ratio).
  const float* GroupRow(int section, int64_t pos) const;
  // Class id of a recent position; precondition: ngram memory exists, len - history_rows <= pos <
  // len.
  int32_t ClassAt(int64_t pos) const;

  // ---- a step ----
  // Free blocks that Reserve() takes from the pool for as many tokens.
  int64_t BlocksToReserve(int64_t num_tokens) const;
  // Makes blocks for tokens [len, len + num_tokens) exclusive to this state: allocates new ones,
  // copies a shared one.  ResourceExhausted, with nothing changed, when the pool has too few.
  Status Reserve(int64_t num_tokens);
  // Takes over what the step wrote; len grows by writes.num_tokens, which Reserve() covered.
  void Commit(const StepWrites& writes);
  // Forgets the last num_tokens tokens.  Precondition: num_tokens <= max_rollback().
  void Rollback(int64_t num_tokens);
  // Down to kMaxRollback below the longest that the state has been, since rings overwrite what lies
  // farther back, and not behind the end of a prefix hit or the point of a restoration.
  int64_t max_rollback() const { return std::max<int64_t>(0, len_ - first_rollback_); }

  // ---- what a prefix cache takes ----
  // The blocks of the first num_tokens tokens.  Precondition: num_tokens <= entries_len().
  std::vector<BlockRef> ShareBlocks(int64_t num_tokens) const;
  // The encoder's windows at len().
  WindowSnapshot CaptureWindows() const;

  // ---- as a whole ----
  // The blocks that this state holds, of its first tokens first; valid until the next non-const
  // call.
  std::span<const BlockRef> blocks() const { return blocks_; }
  int64_t num_blocks() const { return static_cast<int64_t>(blocks_.size()); }
  // The ones among them that nobody else holds: what the pool gets back when the state is dropped.
  int64_t num_exclusive_blocks() const;

  // An independent state with the same content; full blocks are shared.
  SequenceState Fork() const;

  // One versioned byte string, docs/formats/sequence-state.md, block contents included.
  std::string Serialize(const StateIdentity& identity) const;
  int64_t SerializedBytes(const StateIdentity& identity) const;
  // CorruptData for bytes that are damaged, of another version, model, arithmetic or layout;
  // ResourceExhausted when the pool has too few blocks.
  static Result<SequenceState> Deserialize(std::string_view bytes, const StateIdentity& identity,
                                           const KvLayout& layout, BlockPool& pool);

  // Invariants between lengths, floors, blocks and tables, and of the pool; for tests and idle
  // checks.
  bool CheckIntegrity() const;

  // ---- carried, not interpreted here ----
  int64_t prompt_len = 0;
  WindowFloors floors;
  ReplayRecord replay;
  std::string sampler_bytes;
  std::string penalty_bytes;
  std::string grammar_bytes;

 private:
  friend struct SequenceStateCodec;
  void AppendBlock(BlockRef block);
  bool BlocksAreIntact() const;
  // A step of so many tokens writes into a block that another state holds too.
  bool WritesSharedTail(int64_t num_tokens) const;
  void RestoreWindows(const WindowSnapshot& windows);
  std::byte* RingSlot(int ring, int64_t pos);
  float* GroupSlot(int section, int64_t pos);

  const KvLayout* layout_;
  BlockPool* pool_;
  int64_t len_ = 0;
  int64_t entries_len_ = 0;
  int64_t first_rollback_ = 0;  // no roll-back reaches behind it
  std::vector<std::byte>
      rings_;  // [num_rings, ring_rows, window_row_bytes]; slot = pos mod ring_rows
  std::vector<std::vector<float>>
      groups_;                    // [sections][group_rows, 2, head_dim]; slot = pos mod group_rows
  std::vector<int32_t> history_;  // [history_rows]; slot = pos mod history_rows
  std::vector<BlockRef> blocks_;  // ceil(entries_len / 128), more while a step is reserved
  std::vector<std::byte*> block_table_;  // blocks_[i].data()
};

}  // namespace deepinfer
