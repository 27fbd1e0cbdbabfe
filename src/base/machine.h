// What this process may use of the machine it runs on.
#pragma once

#include <cstdint>

namespace deepinfer {

struct MachineLimits {
  int cpus = 1;               // of the affinity mask and the CPU quotas of its control groups
  uint64_t memory_bytes = 0;  // of the machine and the limits of its control groups
};

// Reads /proc and /sys; what cannot be read does not limit.
MachineLimits ReadMachineLimits();

}  // namespace deepinfer
