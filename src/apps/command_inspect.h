// deepinfer inspect: what a checkpoint is and what it will need.
#pragma once

namespace deepinfer {

class CommandRegistry;

void AddInspectCommand(CommandRegistry& registry);

}  // namespace deepinfer
