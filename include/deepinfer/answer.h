// What comes back for a request: values that their receiver owns.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/status.h"

namespace deepinfer {

enum class FinishReason {
  kStop,       // the end token, or a stop string
  kLength,     // max_tokens, or the context is full
  kCancelled,  // the caller asked; the answer is what there was
};
std::string_view FinishReasonName(FinishReason reason);  // "stop", "length", "cancelled"

struct TokenAlternative {
  int32_t token = 0;
  float logprob = 0;  // log-softmax of the model's own logits
};

// What became certain of an answer since the last piece of it.
struct AnswerPiece {
  std::string text{};             // whole UTF-8, never part of a stop string; may be empty
  std::vector<int32_t> tokens{};  // may be empty: a character or a stop string is still undecided
  std::vector<float> logprobs{};  // [tokens]; empty unless the request asked
  std::vector<TokenAlternative> alternatives{};  // [tokens, n], best first
  int64_t prompt_done = 0;                       // tokens of the prompt that are computed
};

// A whole answer.
struct Answer {
  std::string text{};
  std::vector<int32_t> tokens{};  // the end token included when it ended the text
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop_string{};      // the one that was found, if any; not part of the text
  uint64_t seed = 0;              // as given, or as drawn: with it the answer can be repeated
  int64_t prompt_len = 0;         // tokens
  std::vector<float> logprobs{};  // [tokens]; empty unless the request asked
  int num_alternatives = 0;       // n below
  std::vector<TokenAlternative> alternatives{};  // [tokens, n], best first
  double prefill_seconds = 0;                    // from the request's first step to its first token
  double decode_seconds = 0;                     // from there to its last
};

// What Engine::Submit may call.  All run on one thread of the engine, one at a time: one that
// blocks holds up the others, but neither the computation nor answers that are read from streams.
// They may call anything of the engine but WaitIdle, Close and its destructor.
struct RequestCallbacks {
  std::function<void(const AnswerPiece& piece)> on_piece{};  // may be empty
  std::function<void(Result<Answer> answer)> on_end{};       // once
};

}  // namespace deepinfer
