// Memory that a Forward takes beside weights and sequence states: the scratch of a step, as a
// function of the model's dimensions.  The formula follows the allocations of the layers; a test
// holds it against what a step takes.
#pragma once

#include <cstdint>

#include "kv/layout.h"
#include "model/config.h"
#include "model/numerics.h"

namespace deepinfer {

// The largest step that memory is planned for.
struct StepShape {
  int64_t rows = 0;       // of all sequences
  int64_t sequences = 1;  // slices, and rows that want logits
  int64_t max_len = 0;    // tokens of the longest sequence: index scores are held for its entries
  int threads = 1;
};

// Bytes of the scratch arena, the exact peak but for a few hundred bytes of rounding.  At the
// released dimensions 0.32 MB a row.
int64_t StepScratchBytes(const ModelConfig& config, const KvLayout& layout, const StepShape& shape);

// Bytes that the kernels' per-thread work areas may grow to, of all threads; an upper estimate.
int64_t KernelWorkspaceBytes(const ModelConfig& config, int threads);

}  // namespace deepinfer
