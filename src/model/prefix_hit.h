// How much of a cached prefix a prompt may use, and how the windows behind it come back (model.md
// section 7.7).  W is the window, D the first decoder layer.
//
//   snapshot   the W window rows of layers 0..D before the hit are restored: the bits of a cold run
//   exact      the W * (D+1) tokens before the hit run again, without a floor: the same bits.  The
//              rows at the front of every layer are wrong, and no row that is used sees them.
//   bounded    the W tokens before the hit run again with a window floor: approximate by design
//
// Rows that run again are ordinary rows of a Forward; they end before the decoder and leave window
// rows only.
#pragma once

#include <cstdint>

#include "base/function_ref.h"
#include "kv/sequence_state.h"
#include "model/config.h"

namespace deepinfer {

struct PrefixMatch {
  int64_t matched = 0;     // leading tokens of the prompt that a cache holds
  int64_t prompt_len = 0;  // tokens
  int64_t kept_rows = 0;   // KeptRows(): their encoder rows must be computed, not cached
  int64_t block = kBlockTokens;
  int64_t window = 0;
};

struct UsableHit {
  int64_t len = 0;           // tokens, a multiple of the block; 0: nothing is reused
  bool has_windows = false;  // there is a window snapshot at len
};

// The hit rule.  A verify width of 6 stays free for roll-backs; one block less with a snapshot
// costs the same as a replay and is exact; without a snapshot a hit must be longer than the window.
UsableHit FindUsableHit(const PrefixMatch& match, FunctionRef<bool(int64_t position)> has_snapshot);

// Where a sequence with a hit of `hit_len` tokens starts to run.
ReplayRecord PlanReplay(const ModelConfig& config, ReplayRecord::Kind kind, int64_t hit_len);

}  // namespace deepinfer
