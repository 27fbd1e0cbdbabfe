#include "apps/command.h"
#include "apps/command_generate.h"
#include "apps/command_inspect.h"
#include "apps/command_logits.h"
#include "apps/command_synth.h"
#include "apps/command_verify_checkpoint.h"
#include "apps/command_verify_determinism.h"
#include "apps/command_verify_golden.h"

namespace deepinfer {

void AddAllCommands(CommandRegistry& registry) {
  AddGenerateCommand(registry);
  AddLogitsCommand(registry);
  AddInspectCommand(registry);
  AddSynthCommand(registry);
  AddVerifyCheckpointCommand(registry);
  AddVerifyGoldenCommand(registry);
  AddVerifyDeterminismCommand(registry);
}

}  // namespace deepinfer
