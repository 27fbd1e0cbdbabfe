// Runs one request on a model from prompt to last token: prefill in chunks, then one token a step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model_instance.h"
#include "sampling/params.h"
#include "sampling/sampler.h"

namespace deepinfer {

struct GenerationRequest {
  std::vector<BatchRow> prompt;  // positions from 0
  SamplingParams sampling;
  std::vector<std::string> stop;  // stop strings, not part of the text
  int64_t max_tokens = 0;         // 0: as many as the context allows
  bool ignore_eos = false;
  PrefillOptions prefill;
  int64_t chunk = 0;  // largest prefill chunk; 0: kMaxBatchRows
};

enum class FinishReason { kStop, kLength };

struct GenerationResult {
  std::vector<SampledToken> tokens;  // the end token included when it ended the text
  std::string text;
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop_string;  // the one that was found, if any
  uint64_t seed = 0;        // as given, or as drawn
  int64_t prompt_len = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

// Called with every piece of text that is certain.  An error ends the generation with it.
using OnText = std::function<Status(std::string_view text)>;

// InvalidArgument for parameters out of range or a prompt that leaves no room in the context;
// Cancelled when the context was asked to stop.  Needs a tokenizer.
Result<GenerationResult> Generate(ModelInstance& model, const GenerationRequest& request,
                                  const OnText& on_text);

// Text rows of token ids from position 0.
std::vector<BatchRow> TextRows(const std::vector<int32_t>& tokens);

}  // namespace deepinfer
