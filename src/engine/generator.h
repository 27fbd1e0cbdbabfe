// One request on a model from prompt to last token: the engine with nobody else in it.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "engine/model_instance.h"
#include "engine/request.h"

namespace deepinfer {

// Called with every piece of text that is certain.  An error ends the generation with it.
using TextCallback = std::function<Status(std::string_view text)>;
// Prompt rows that are computed, of all.
using PrefillCallback = std::function<void(int64_t done, int64_t total)>;

// InvalidArgument for parameters out of range or a prompt that leaves no room in the context;
// Cancelled when the context was asked to stop.  Needs a tokenizer.
Result<GenerationResult> Generate(ModelInstance& model, GenerationRequest request,
                                  const TextCallback& on_text,
                                  const PrefillCallback& on_prefill = {});

// The same, but a stop ends the answer with what there is (FinishReason::kCancelled).
Result<GenerationResult> GenerateUntilStopped(ModelInstance& model, GenerationRequest request,
                                              const TextCallback& on_text,
                                              const PrefillCallback& on_prefill = {});

}  // namespace deepinfer
