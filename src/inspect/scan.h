// Reads every byte of a checkpoint and looks for values that no weight may have.  Loading checks
// the rest (layout, resident scales); this is the whole, for a copy that one wants to be sure of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "weights/checkpoint.h"

namespace deepinfer {

struct ScanProblem {
  std::string file;
  std::string tensor;
  std::string found;  // the first bad value: "scale byte 7 at element 12"
  std::string expected;
  int64_t count = 0;  // bad values in this tensor
};

struct ScanReport {
  int64_t files = 0;
  int64_t tensors = 0;
  int64_t bytes = 0;                  // of tensor data
  std::vector<ScanProblem> problems;  // one per bad tensor, in order of name
};

struct ScanOptions {
  int threads = 1;
  // Called a few times a second from the calling thread.
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_progress;
  // Asked as often; true ends the scan with Cancelled.
  std::function<bool()> should_stop;
};

// Scale bytes outside 41..200, NaN codes of e4m3, bf16 and f32 values that are not finite.  Other
// types cannot hold a bad value; their bytes are read all the same, so that a failing disk shows.
// Tensors are read in the order of their files, in pieces that the threads share.
Result<ScanReport> ScanCheckpoint(const Checkpoint& checkpoint, const ScanOptions& options);

}  // namespace deepinfer
