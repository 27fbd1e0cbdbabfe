#include "engine/reuse.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {
namespace {

// full and exact give every row the bits of the definition.  mask and compact give the decoder a
// window floor that moves with the length of the prompt: what an earlier prompt left there is not
// what this one would compute, unless both kept all of their rows.
bool KeepsEveryRow(const SequenceState& state, const PrefillOptions& prefill, int64_t prompt_len) {
  if (state.floors.decoder != 0) return false;
  const bool cuts = prefill.mode == PrefillMode::kMask || prefill.mode == PrefillMode::kCompact;
  return !cuts || prompt_len <= prefill.keep;
}

}  // namespace

bool HasColdBits(const SequenceState& state) {
  return state.replay.kind != ReplayRecord::Kind::kBounded && state.floors.encoder == 0;
}

int64_t ReusableTokens(const SequenceState& state, std::span<const int32_t> computed,
                       std::span<const int32_t> prompt, const PrefillOptions& prefill) {
  CHECK_EQ(static_cast<int64_t>(computed.size()), state.len());
  const auto prompt_len = static_cast<int64_t>(prompt.size());
  if (prompt.empty() || !HasColdBits(state)) return 0;
  if (!KeepsEveryRow(state, prefill, prompt_len)) return 0;
  const auto [end, ignored] =
      std::mismatch(computed.begin(), computed.end(), prompt.begin(), prompt.end());
  const int64_t common = std::min<int64_t>(end - computed.begin(), prompt_len - 1);
  return state.len() - common <= state.max_rollback() ? common : 0;
}

}  // namespace deepinfer
