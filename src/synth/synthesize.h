// Writes a made-up checkpoint in the released format: config.json, weights in one file or shards,
// tokenizer, generation defaults and engram.json.  Streams with a few megabytes of memory whatever
// the size.
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "io/file.h"
#include "model/config.h"

namespace deepinfer {

struct SynthOptions {
  Path dir;  // new or empty; made with its parents
  uint64_t seed = 0;
  uint64_t max_shard_bytes = uint64_t{5} << 30;  // a larger tensor has a shard of its own
  // N-gram tables with more codes than this are left as holes: every row reads as zeros.
  uint64_t max_dense_table_bytes = uint64_t{4} << 30;
  // Called a few times a second at least.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_progress;
  // Asked as often; true ends the work with Cancelled.
  std::function<bool()> should_stop;
};

struct SynthReport {
  int64_t tensors = 0;
  int64_t bytes = 0;         // of tensor data
  int64_t sparse_bytes = 0;  // of them, left as holes
  int files = 0;             // of weights
};

// config.json is written last, so what a crash leaves behind does not look like a checkpoint; after
// an error, or when asked to stop, everything written is removed again.
// ResourceExhausted when the disk has too little room, InvalidArgument for a directory in use.
Result<SynthReport> Synthesize(const ModelConfig& config, const SynthOptions& options);

}  // namespace deepinfer
