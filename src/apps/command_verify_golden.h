// deepinfer verify golden DIR: holds this program against recorded outputs.
#pragma once

namespace deepinfer {

class CommandRegistry;
void AddVerifyGoldenCommand(CommandRegistry& registry);

}  // namespace deepinfer
