// deepinfer bench engine: throughput, latency and idle share of many requests at a time.
#pragma once

namespace deepinfer {

class CommandRegistry;
void AddBenchEngineCommand(CommandRegistry& registry);

}  // namespace deepinfer
