// deepinfer synth: writes a made-up checkpoint in the released format.
#pragma once

namespace deepinfer {

class CommandRegistry;

void AddSynthCommand(CommandRegistry& registry);

}  // namespace deepinfer
