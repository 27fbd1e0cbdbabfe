// What is asked of the engine and what comes back: values, and the listener of one request.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "deepinfer/answer.h"
#include "kv/sequence_state.h"
#include "model/prefill.h"
#include "model/transformer.h"
#include "sampling/params.h"
#include "sampling/sampler.h"

namespace deepinfer {

// Move-only.
struct GenerationRequest {
  std::vector<BatchRow> prompt;  // positions from 0; what rows point to outlives the request
  SamplingParams sampling;
  std::vector<std::string> stop;  // stop strings, not part of the text
  int64_t max_tokens = 0;         // 0: as many as the context allows
  bool ignore_eos = false;
  PrefillOptions prefill;
  int64_t chunk = 0;                  // most prompt rows in one step; 0: as many as fit
  int priority = 0;                   // higher goes first, and takes memory from lower ones
  int64_t first_token_within_ms = 0;  // refused when it waits longer to begin; 0: waits for ever
  // What was computed before: a state of this model over the first tokens of the prompt, fewer than
  // all.  Its bits must be those of a cold start of this prompt (ReusableTokens, engine/reuse.h).
  std::optional<SequenceState> state;
  bool keep_state = false;  // hand the state back with the result
  // false: the listener makes the text out of OnToken and finds the stop strings in it; the request
  // ends at the end token or max_tokens, its result has no text and no OnText is called.
  bool make_text = true;
};

// A token as it was chosen.
struct ChosenToken {
  int32_t token = 0;
  float logprob = 0;                  // of the model's own distribution, if the request asked
  std::span<const TokenLogprob> top;  // the best ones, if it asked; valid during the call
};

struct GenerationResult {
  std::vector<int32_t> tokens;  // the end token included when it ended the text
  std::string text;
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop_string;  // the one that was found, if any
  uint64_t seed = 0;        // as given, or as drawn
  int64_t prompt_len = 0;
  int64_t reused_len = 0;         // prompt tokens that the request's state covered
  int64_t num_preemptions = 0;    // times it was set aside and resumed
  std::vector<float> logprobs;    // [tokens] of the model's own distribution; empty unless asked
  int num_top = 0;                // best tokens per token, at most vocab_size
  std::vector<TokenLogprob> top;  // [tokens, num_top], best first
  double prefill_seconds = 0;     // from the request's first step to its first token
  double decode_seconds = 0;      // from there to its last
  // Over prompt and all tokens but the last; if asked for, and unless it ended while set aside.
  std::optional<SequenceState> state;
};

// Hears of one request, on the step thread: OnStart when its first step begins, any number of
// OnPrefill, OnToken and OnText, then OnFinish once.
class RequestListener {
 public:
  virtual ~RequestListener() = default;
  // Asked before each step: whether there is room for one more token.  Without it the request sits
  // the step out.
  virtual bool HasRoom() const { return true; }
  virtual void OnStart() {}
  // Prompt rows that are computed, of all.
  virtual void OnPrefill(int64_t /*done*/, int64_t /*total*/) {}
  virtual void OnToken(const ChosenToken& /*token*/) {}
  // A piece of text that is certain: whole UTF-8, never part of a stop string.  An error ends the
  // request with it.
  virtual Status OnText(std::string_view /*text*/) { return Status::Ok(); }
  virtual void OnFinish(Result<GenerationResult> result) = 0;
};

// For a request without one.
uint64_t DrawSeed();

// Text rows of token ids from position 0.
std::vector<BatchRow> TextRows(const std::vector<int32_t>& tokens);

}  // namespace deepinfer
