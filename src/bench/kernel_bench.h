// The ops of one layer at the released dimensions, each held against the limit that binds it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/roofline.h"

namespace deepinfer {

struct BenchResult {
  std::string name;  // "ffn_mxfp4", "index_1m", ...
  int64_t rows = 0;
  double ms = 0;      // median of a call
  double gmacs = 0;   // multiply-accumulates a second / 1e9
  double gbytes = 0;  // bytes that must come from memory a second / 1e9
  std::string limit;  // "dram", "bf16" or "int8": the one that would take longest
  double percent_of_limit = 0;
};

struct KernelBenchOptions {
  std::string filter;         // names that contain it; empty: all
  std::vector<int64_t> rows;  // empty: 1, 2, 6, 16, 64, 128, 512, 2048
  double seconds = 0.3;       // of each measurement
};

// Calls on_result after each measurement.  The memory limit is measured again before every op.
std::vector<BenchResult> BenchKernels(ExecContext& context, const Roofline& roofline,
                                      const KernelBenchOptions& options,
                                      const std::function<void(const BenchResult&)>& on_result);

}  // namespace deepinfer
