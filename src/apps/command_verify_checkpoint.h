// deepinfer verify checkpoint: reads all of a checkpoint and checks all of it.
#pragma once

namespace deepinfer {

class CommandRegistry;

void AddVerifyCheckpointCommand(CommandRegistry& registry);

}  // namespace deepinfer
