#include "sampling/penalties.h"

namespace deepinfer {

TokenCounts::TokenCounts(int64_t vocab_size) : seen_(static_cast<size_t>(vocab_size)) {
  tokens_.reserve(seen_.size());
}

TokenCounts::Seen& TokenCounts::At(int32_t token) {
  Seen& seen = seen_[static_cast<size_t>(token)];
  if (!seen.listed) {
    seen.listed = true;
    tokens_.push_back(token);
  }
  return seen;
}

void TokenCounts::Apply(const SamplingParams& params, std::span<float> logits) const {
  const auto repetition = static_cast<float>(params.repetition_penalty);
  const auto presence = static_cast<float>(params.presence_penalty);
  const auto frequency = static_cast<float>(params.frequency_penalty);
  const bool penalised = repetition != 1.0f || presence != 0.0f || frequency != 0.0f;
  if (penalised) {
    // Each token is touched once, so the list's order does not matter.
    for (const int32_t token : tokens_) {
      const Seen& seen = seen_[static_cast<size_t>(token)];
      if (!seen.in_prompt && seen.in_output == 0) continue;
      float& logit = logits[static_cast<size_t>(token)];
      logit = logit > 0 ? logit / repetition : logit * repetition;
      if (seen.in_output > 0) {
        logit -= presence + frequency * static_cast<float>(seen.in_output);
      }
    }
  }
  for (const auto& [token, bias] : params.logit_bias) logits[static_cast<size_t>(token)] += bias;
}

}  // namespace deepinfer
