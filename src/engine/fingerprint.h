// What tells one model from another: in state bytes, cache keys and system_fingerprint.
#pragma once

#include <array>
#include <cstdint>

#include "model/config.h"
#include "weights/checkpoint.h"

namespace deepinfer {

// SHA-256 over the config's numbers, every file header (names, types, shapes, places) and the bytes
// of every tensor of at most 64 KiB: norms, gates' biases, hyper-connection bases, sinks. A
// retrained model differs in these even where its shapes are the same, and hashing them costs
// milliseconds.
std::array<uint8_t, 32> FingerprintOf(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace deepinfer
