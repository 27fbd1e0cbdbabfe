#include "apps/load_model.h"

#include <fmt/format.h>

#include <cstdlib>

#include "apps/model_dir.h"
#include "apps/progress.h"
#include "base/log.h"

namespace deepinfer {

std::string ForcedIsa() {
  const char* isa = std::getenv("DEEPINFER_ISA");
  return isa == nullptr ? "" : isa;
}

Result<std::unique_ptr<ModelInstance>> LoadModel(const GlobalOptions& options,
                                                 int64_t max_sequences) {
  ASSIGN_OR_RETURN(const Path dir, FindModelDir(options.model));
  Result<std::unique_ptr<ModelInstance>> model = [&] {
    Progress progress("loading", ProgressUnit::kFiles);
    return ModelInstance::Load(
        {.dir = dir,
         .numerics = options.numerics,
         .isa = ForcedIsa(),
         .threads = options.threads,
         .memory = static_cast<int64_t>(options.memory),
         .kv_cache_memory = static_cast<int64_t>(options.kv_cache_memory),
         .max_model_len = options.max_model_len,
         .max_sequences = max_sequences,
         .on_file = [&](int64_t done, int64_t total) { progress.Update(done, total); }});
  }();
  if (model.ok()) {
    const MemoryPlan& plan = (*model)->memory_plan();
    LogMemoryPlan(options, PlanLine(plan), plan.all_experts_resident());
  }
  return model;
}

Result<std::unique_ptr<ModelInstance>> LoadModelWithTokenizer(const GlobalOptions& options,
                                                              int64_t max_sequences) {
  ASSIGN_OR_RETURN(std::unique_ptr<ModelInstance> model, LoadModel(options, max_sequences));
  if (model->tokenizer() == nullptr) {
    return NotFound(fmt::format("{}: found no tokenizer.json, expected one to read and write text",
                                model->dir().string()));
  }
  return model;
}

void LogMemoryPlan(const GlobalOptions& options, const std::string& plan, bool all_resident) {
  const bool given = options.memory > 0 || options.kv_cache_memory > 0;
  Log(given || !all_resident ? LogLevel::kInfo : LogLevel::kDebug, plan);
}

}  // namespace deepinfer
