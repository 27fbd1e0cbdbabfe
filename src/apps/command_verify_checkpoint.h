#pragma once

namespace deepinfer {

class CommandRegistry;

// deepinfer verify checkpoint: reads all of a checkpoint and checks all of it.
void AddVerifyCheckpointCommand(CommandRegistry& registry);

}  // namespace deepinfer
