#include "apps/chat/command_chat.h"
#include "apps/command.h"
#include "apps/command_bench.h"
#include "apps/command_bench_engine.h"
#include "apps/command_inspect.h"
#include "apps/command_logits.h"
#include "apps/command_synth.h"
#include "apps/command_verify_checkpoint.h"
#include "apps/command_verify_determinism.h"
#include "apps/command_verify_golden.h"
#include "apps/generate/command_generate.h"

namespace deepinfer {

void AddAllCommands(CommandRegistry& registry) {
  AddGenerateCommand(registry);
  AddChatCommand(registry);
  AddLogitsCommand(registry);
  AddInspectCommand(registry);
  AddSynthCommand(registry);
  AddVerifyCheckpointCommand(registry);
  AddVerifyGoldenCommand(registry);
  AddVerifyDeterminismCommand(registry);
  AddBenchCommands(registry);
  AddBenchEngineCommand(registry);
}

}  // namespace deepinfer
