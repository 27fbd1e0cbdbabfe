#pragma once

namespace deepinfer {

class CommandRegistry;

// deepinfer inspect: what a checkpoint is and what it will need.
void AddInspectCommand(CommandRegistry& registry);

}  // namespace deepinfer
