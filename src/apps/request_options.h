// What a user may ask of one answer, by the same names as flags and as fields of a JSONL line. What
// is not given is absent, so that one set can be laid over another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deepinfer/request.h"
#include "sampling/params.h"

namespace CLI {
class App;
}

namespace deepinfer {

struct RequestOptions {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int> top_k;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<std::vector<std::pair<int32_t, float>>> logit_bias;
  std::optional<uint64_t> seed;
  std::optional<int> logprobs;
  std::optional<int64_t> max_tokens;
  std::optional<std::vector<std::string>> stop;
  std::optional<bool> raw;
  std::optional<bool> thinking;
  std::optional<std::string> effort;
  std::optional<std::string> system;

  // The flags that every command with answers has: all but logprobs and raw.  They write into this
  // object, which must not move afterwards.
  void AddFlags(CLI::App& app);
  // Takes from `defaults` what is absent here.
  void FillFrom(const RequestOptions& defaults);
  // How tokens are chosen, for the public engine.
  SamplingOptions Sampling() const;
  // The checkpoint's recommendation with the given parameters laid over it.
  SamplingParams SamplingOver(SamplingParams recommended) const;
};

}  // namespace deepinfer
