// A decode step of the whole released model, put together from measured ops: what 40 layers would
// take on this machine without a checkpoint at hand.
#pragma once

#include <optional>
#include <span>

#include "bench/kernel_bench.h"

namespace deepinfer {

struct DecodeSchedule {
  double ms_at_1k = 0;  // one token with 1,024 tokens of context
  double ms_at_1m = 0;  // with 1,048,576
};

// Nothing when one of the ops was not measured with one row.
std::optional<DecodeSchedule> ComputeDecodeSchedule(std::span<const BenchResult> results);

}  // namespace deepinfer
