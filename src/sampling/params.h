// How the tokens of one request are chosen.  Order of application (sampling.md section 1):
// penalties and logit bias -> mask -> temperature -> top-k -> top-p -> min-p -> the race.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace deepinfer {

struct SamplingParams {
  double temperature = 1.0;         // 0: greedy
  int top_k = 0;                    // 0: all
  double top_p = 1.0;               // (0, 1]
  double min_p = 0.0;               // [0, 1): relative to the most likely token
  double repetition_penalty = 1.0;  // > 0; on tokens of prompt and output, 1: none
  double presence_penalty = 0.0;    // [-2, 2], on tokens of the output
  double frequency_penalty = 0.0;   // [-2, 2], per occurrence in the output
  std::vector<std::pair<int32_t, float>> logit_bias;  // token, [-100, 100]
  std::optional<uint64_t> seed;                       // absent: one is drawn and reported
  int num_logprobs = -1;  // -1: none; n: the chosen token's and the n best ones'

  // InvalidArgument that names the parameter, what was found and what was expected.
  Status Validate(int64_t vocab_size) const;
};

}  // namespace deepinfer
