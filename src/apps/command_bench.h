// deepinfer bench machine | kernels | model
#pragma once

#include "apps/command.h"

namespace deepinfer {

void AddBenchCommands(CommandRegistry& registry);

}  // namespace deepinfer
