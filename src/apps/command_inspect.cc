#include "apps/command_inspect.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "apps/command.h"
#include "apps/model_dir.h"
#include "inspect/render.h"
#include "inspect/report.h"

namespace deepinfer {
namespace {

struct InspectFlags {
  bool json = false;
};

Status RunInspect(const InspectFlags& flags, const CommandContext& context) {
  const GlobalOptions& global = context.global;
  ASSIGN_OR_RETURN(const Path path, FindModelDir(global.model));
  const char* isa = std::getenv("DEEPINFER_ISA");
  ASSIGN_OR_RETURN(const InspectReport report, Inspect({.path = path,
                                                        .numerics = global.numerics,
                                                        .max_model_len = global.max_model_len,
                                                        .threads = global.threads,
                                                        .memory = global.memory,
                                                        .kv_cache_memory = global.kv_cache_memory,
                                                        .isa = isa != nullptr ? isa : ""}));
  return context.out.Write(flags.json ? RenderJson(report) : RenderText(report));
}

}  // namespace

void AddInspectCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App& app = registry.Add(
      {.name = "inspect",
       .summary = "what is in a checkpoint, what it needs and what would run where",
       .examples = {"deepinfer inspect", "deepinfer inspect --model /data/DeepSeek-V4.1-Flash",
                    "deepinfer inspect --model config.json --json"}},
      [flags](const CommandContext& context) { return RunInspect(*flags, context); });
  app.add_flag("--json", flags->json, "print JSON");
}

}  // namespace deepinfer
