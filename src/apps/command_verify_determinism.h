// deepinfer verify determinism: computes the same tokens in every way and compares all bits.
#pragma once

namespace deepinfer {

class CommandRegistry;
void AddVerifyDeterminismCommand(CommandRegistry& registry);

}  // namespace deepinfer
