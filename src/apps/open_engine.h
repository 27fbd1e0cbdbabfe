// Opens the public engine on the model that the global options name.
#pragma once

#include "apps/command.h"
#include "apps/prefill_flags.h"
#include "base/status.h"
#include "deepinfer/engine.h"

namespace deepinfer {

// What a command's own flags say about the engine.
struct EngineFlags {
  int64_t max_sequences = 16;
  int64_t max_batch_tokens = 0;  // 0: the engine's choice
  int64_t step_time_budget_ms = 0;
  bool profile = false;  // account time to ops
};

// --model, --numerics, --threads, --max-model-len, DEEPINFER_ISA and these flags.
Result<Engine> OpenEngine(const GlobalOptions& global, const PrefillFlags& prefill,
                          const EngineFlags& flags);

}  // namespace deepinfer
