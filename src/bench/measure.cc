#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace deepinfer {

Timing Measure(FunctionRef<void()> body, const MeasureOptions& options) {
  using Clock = std::chrono::steady_clock;
  body();
  std::vector<double> times;
  double total = 0;
  while (total < options.seconds || static_cast<int>(times.size()) < options.least) {
    const Clock::time_point start = Clock::now();
    body();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  return {.median = times[times.size() / 2],
          .fastest = times.front(),
          .repeats = static_cast<int>(times.size())};
}

}  // namespace deepinfer
