#include "apps/command.h"
#include "apps/command_inspect.h"

namespace deepinfer {

void AddAllCommands(CommandRegistry& registry) { AddInspectCommand(registry); }

}  // namespace deepinfer
