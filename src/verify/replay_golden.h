// Holds prefill modes and prefix hits against their recorded outputs.
//
// Inside this program: logits and states of every case equal those of the case it is recorded as
// equal to, bit for bit; floors and hit lengths are the recorded ones.  Against the files:
//
//   fp32      logits within 1e-4, state rows within 1e-4 of the tensor's largest magnitude
//   release   logits within 2e-3, at most 5 % of the values of a state tensor differ
//   both      greedy tokens equal, unless the two best golden logits lie within both tolerances
//
// Everything of the draft head in the files (drafts, draft_logits, confidence_logits, state
// draft.K) is skipped: it does not run yet.
#pragma once

#include <vector>

#include "engine/model_instance.h"
#include "verify/golden.h"
#include "verify/replay_cases.h"

namespace deepinfer {

// The cases of one arithmetic, a line per prompt.  The model needs memory for kRunSequences.
Result<std::vector<GoldenLine>> VerifyReplay(ModelInstance& model, const ReplayFolder& folder,
                                             Numerics numerics);

}  // namespace deepinfer
