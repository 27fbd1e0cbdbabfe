// What a benchmark of the engine asks of it: how many requests, when, how long, and how much their
// prompts have in common.  The same description and seed give the same requests everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// Tokens; log-normal around the median, cut to [min, max], or uniform over it without a spread.
struct LengthDistribution {
  int64_t min = 1;
  int64_t max = 1;
  int64_t median = 0;  // 0: uniform
  double spread = 0;   // standard deviation of the logarithm
};

struct EngineLoad {
  std::string name;
  int64_t requests = 32;
  double rate = 0;        // arrivals a second, as of many independent users; 0: all at once
  int64_t in_flight = 0;  // at most so many not yet ended; 0: no bound
  LengthDistribution prompt{.min = 16, .max = 64};
  LengthDistribution output{.min = 16, .max = 64};
  double shared_share = 0;  // share of the requests whose prompts begin alike
  int64_t shared_len = 0;   // tokens of that beginning, in addition to the prompt's length
  double temperature = 1;
  uint64_t seed = 1;
};

// "chat", "agent", "batch".
std::vector<std::string> EngineLoadNames();
// Precondition: one of the names.
EngineLoad EngineLoadNamed(std::string_view name);
// A JSON object with the fields' names; what it leaves out is as above.  InvalidArgument names the
// field, what was found and what was expected.
Result<EngineLoad> ParseEngineLoad(std::string_view json);
std::string EngineLoadJson(const EngineLoad& load);

// One request of a load.
struct LoadRequest {
  double arrival = 0;  // seconds from the start
  std::vector<int32_t> prompt;
  int64_t output_len = 0;
  uint64_t seed = 0;
};
// Tokens of prompts are below vocab_size.
std::vector<LoadRequest> MakeRequests(const EngineLoad& load, int64_t vocab_size);

}  // namespace deepinfer
