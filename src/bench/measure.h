// Repeats a piece of work and keeps the median: the machine is shared, and single runs lie.
#pragma once

#include <cstdint>

#include "base/function_ref.h"

namespace deepinfer {

struct Timing {
  double median = 0;  // seconds
  double fastest = 0;
  int repeats = 0;
};

struct MeasureOptions {
  double seconds = 0.3;  // measure for at least so long
  int least = 5;         // and so many times
};

// One call to warm up, then timed calls.
Timing Measure(FunctionRef<void()> body, const MeasureOptions& options = {});

}  // namespace deepinfer
