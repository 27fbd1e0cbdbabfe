// deepinfer generate: one prompt in, its continuation out.
#pragma once

namespace deepinfer {

class CommandRegistry;
void AddGenerateCommand(CommandRegistry& registry);

}  // namespace deepinfer
