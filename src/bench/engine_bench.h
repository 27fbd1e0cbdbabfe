// Throughput and latency of the engine under a load, as its callers see them, and how well its
// compute threads are used.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/engine_load.h"
#include "deepinfer/engine.h"

namespace deepinfer {

struct Quantiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};
// Nearest rank; zeros of nothing.
Quantiles QuantilesOf(std::vector<double> values);

struct EngineBenchResult {
  EngineLoad load;
  double seconds = 0;           // from the first arrival to the last end
  Quantiles first_token_ms;     // from a request's arrival to its first token
  Quantiles between_tokens_ms;  // from a token to the next of the same answer
  Quantiles request_ms;         // from arrival to end
  double requests_per_second = 0;
  double prompt_tokens_per_second = 0;
  double output_tokens_per_second = 0;
  EngineStatistics figures;  // of the load alone, the warm-up left out
};

// Called when a request has ended: how many have, of all.
using BenchProgress = std::function<void(int64_t done, int64_t total)>;

// One short request to warm up, then the load.  The first error of a request ends it.
Result<EngineBenchResult> BenchEngine(Engine& engine, const EngineLoad& load,
                                      const BenchProgress& on_progress);

// Several lines: latencies, throughput, idle share, and the table of steps by size.
std::string EngineBenchText(const EngineBenchResult& result);
std::string EngineBenchJson(const EngineBenchResult& result);
// Step time and throughput over the tokens of a step.
std::string StepSizeSvg(const EngineBenchResult& result);

}  // namespace deepinfer
