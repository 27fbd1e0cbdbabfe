// When a state that was computed before may stand for the first tokens of a new prompt.
#pragma once

#include <cstdint>
#include <span>

#include "kv/sequence_state.h"
#include "model/prefill.h"

namespace deepinfer {

// Whether a state holds the bits of running its tokens from the first one.  One that began behind a
// bounded replay does not, and nothing but its own bytes can bring it back.
bool HasColdBits(const SequenceState& state);

// Leading tokens of `prompt` that a state over `computed` (computed.size() == state.len()) can
// serve, after rolling back the others, so that everything afterwards has the bits of a cold start;
// 0 when it cannot.  At least one token of the prompt is left to compute.
int64_t ReusableTokens(const SequenceState& state, std::span<const int32_t> computed,
                       std::span<const int32_t> prompt, const PrefillOptions& prefill);

}  // namespace deepinfer
