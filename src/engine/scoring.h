// Teacher-forced logits: every position's prediction of the next token, for given tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/model_instance.h"

namespace deepinfer {

struct ScoringRequest {
  std::vector<int32_t> tokens;
  std::vector<int64_t> positions;     // ascending; whose logits are wanted
  int64_t chunk = 0;                  // rows of one Forward; 0: kMaxBatchRows
  LayerObserver* observer = nullptr;  // may be null
};

// Called once per wanted position, in order; logits [vocab_size] are valid during the call.
using OnLogits = std::function<Status(int64_t position, std::span<const float> logits)>;

// InvalidArgument for tokens or positions out of range; Cancelled when asked to stop.
Status ScoreTokens(ModelInstance& model, const ScoringRequest& request, const OnLogits& on_logits);

}  // namespace deepinfer
