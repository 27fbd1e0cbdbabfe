#pragma once

namespace deepinfer {

class CommandRegistry;

// deepinfer synth: writes a made-up checkpoint in the released format.
void AddSynthCommand(CommandRegistry& registry);

}  // namespace deepinfer
