// Which tokens a sequence has seen, for the penalties.  Part of the sequence's state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/params.h"

namespace deepinfer {

// Allocates when it is made, never afterwards.  Not thread-safe.  Tokens are ids of the vocabulary.
class TokenCounts {
 public:
  explicit TokenCounts(int64_t vocab_size);

  void AddPrompt(int32_t token) { At(token).in_prompt = true; }
  void AddOutput(int32_t token) { ++At(token).in_output; }
  // Takes an output token back after a roll-back.
  void RemoveOutput(int32_t token) { --At(token).in_output; }

  // Lowers (or raises) the logits of seen tokens, then adds the request's biases.
  //   repetition: logit > 0 ? logit / penalty : logit * penalty, for tokens of prompt and output
  //   presence, frequency: logit -= presence + frequency * count, for tokens of the output
  void Apply(const SamplingParams& params, std::span<float> logits) const;

 private:
  struct Seen {
    bool listed = false;  // in tokens_
    bool in_prompt = false;
    int32_t in_output = 0;
  };
  Seen& At(int32_t token);

  std::vector<Seen> seen_;       // [vocab_size]
  std::vector<int32_t> tokens_;  // that were ever added, each once
};

}  // namespace deepinfer
