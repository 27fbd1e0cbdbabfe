#include "apps/open_engine.h"

#include <optional>

#include "apps/load_model.h"
#include "apps/model_dir.h"
#include "apps/progress.h"

namespace deepinfer {
namespace {

EngineOptions::Prefill PublicMode(PrefillMode mode) {
  switch (mode) {
    case PrefillMode::kFull:
      return EngineOptions::Prefill::kFull;
    case PrefillMode::kExact:
      return EngineOptions::Prefill::kExact;
    case PrefillMode::kMask:
      return EngineOptions::Prefill::kMask;
    case PrefillMode::kCompact:
      break;
  }
  return EngineOptions::Prefill::kCompact;
}

}  // namespace

Result<Engine> OpenEngine(const GlobalOptions& global, const PrefillFlags& prefill,
                          const EngineFlags& flags) {
  ASSIGN_OR_RETURN(const Path dir, FindModelDir(global.model));
  std::optional<Progress> progress(std::in_place, "loading", ProgressUnit::kFiles);
  Result<Engine> engine = Engine::Open(
      {.model_dir = dir,
       .threads = global.threads,
       .memory_bytes = static_cast<int64_t>(global.memory),
       .kv_memory_bytes = static_cast<int64_t>(global.kv_cache_memory),
       .max_sequences = flags.max_sequences,
       .max_model_len = global.max_model_len,
       .max_batch_tokens = flags.max_batch_tokens,
       .step_time_budget_ms = flags.step_time_budget_ms,
       .prefill_chunk = prefill.chunk,
       .arithmetic = global.numerics == Numerics::kFp32 ? EngineOptions::Arithmetic::kFp32
                                                        : EngineOptions::Arithmetic::kRelease,
       .prefill = PublicMode(prefill.Options().mode),
       .prefill_keep = prefill.keep,
       .profile = flags.profile,
       .isa = ForcedIsa(),
       .on_load = [&](int64_t done, int64_t total) { progress->Update(done, total); }});
  progress.reset();
  if (engine.ok()) LogMemoryPlan(global, engine->MemoryPlan(), engine->all_weights_resident());
  return engine;
}

}  // namespace deepinfer
