// Which tokens a sequence has seen, for the penalties.  Part of the sequence's state.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "sampling/params.h"

namespace deepinfer {

// Not thread-safe.
class TokenCounts {
 public:
  void AddPrompt(int32_t token) { counts_[token].in_prompt = true; }
  void AddOutput(int32_t token) { ++counts_[token].in_output; }
  // Takes an output token back after a roll-back.
  void RemoveOutput(int32_t token) { --counts_[token].in_output; }

  // Lowers (or raises) the logits of seen tokens, then adds the request's biases.
  //   repetition: logit > 0 ? logit / penalty : logit * penalty, for tokens of prompt and output
  //   presence, frequency: logit -= presence + frequency * count, for tokens of the output
  void Apply(const SamplingParams& params, std::span<float> logits) const;

 private:
  struct Seen {
    bool in_prompt = false;
    int32_t in_output = 0;
  };
  std::unordered_map<int32_t, Seen> counts_;
};

}  // namespace deepinfer
