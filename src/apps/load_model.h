// Loads the model that the global options name.
#pragma once

#include <memory>

#include "apps/command.h"
#include "base/status.h"
#include "engine/model_instance.h"

namespace deepinfer {

// --model, --numerics, --threads, --memory, --kv-cache-memory, --max-model-len and DEEPINFER_ISA,
// for this many sequences in flight.  Tells the memory plan in a line.
Result<std::unique_ptr<ModelInstance>> LoadModel(const GlobalOptions& options,
                                                 int64_t max_sequences = 1);

// The same, with a tokenizer: NotFound when the checkpoint has none.
Result<std::unique_ptr<ModelInstance>> LoadModelWithTokenizer(const GlobalOptions& options,
                                                              int64_t max_sequences = 1);

// DEEPINFER_ISA, or an empty string.
std::string ForcedIsa();

// Says how memory was divided: news when a budget was given or when not everything has room.
void LogMemoryPlan(const GlobalOptions& options, const std::string& plan, bool all_resident);

}  // namespace deepinfer
