// What this process may use of the machine it runs on.
#pragma once

#include <cstdint>
#include <string>

namespace deepinfer {

struct MachineLimits {
  int cpus = 1;               // of the affinity mask and the CPU quotas of its control groups
  uint64_t memory_bytes = 0;  // of the machine and the limits of its control groups
};

// Reads /proc and /sys; what cannot be read does not limit.
MachineLimits ReadMachineLimits();

// Most memory that this process has held at a time, mapped files included as far as they were in
// memory; 0 when the system does not say.
uint64_t PeakMemoryBytes();

// What the system calls the processor; "unknown" where it does not say.
std::string ProcessorName();

}  // namespace deepinfer
