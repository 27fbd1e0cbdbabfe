// The sampling flags that commands share; a flag that is not given leaves the checkpoint's default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "sampling/params.h"

namespace CLI {
class App;
}

namespace deepinfer {

struct SamplingFlags {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::vector<std::string> logit_bias;  // "TOKEN:BIAS"
  std::optional<uint64_t> seed;

  void AddTo(CLI::App& app);
  // Defaults with the given flags laid over them; InvalidArgument for a malformed logit bias.
  Result<SamplingParams> Over(SamplingParams defaults) const;
};

}  // namespace deepinfer
