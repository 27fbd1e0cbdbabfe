#include "apps/command.h"

namespace deepinfer {

void AddAllCommands(CommandRegistry& /*registry*/) {}

}  // namespace deepinfer
