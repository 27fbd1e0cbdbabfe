// What a checkpoint is, what it needs and what runs where: figures that follow from the
// configuration alone.  Plain data, computed once; render.h turns it into text or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/memory_plan.h"
#include "model/config.h"
#include "model/manifest.h"
#include "model/numerics.h"

namespace deepinfer {

struct PartReport {
  ModelPart part;
  int64_t tensors = 0;
  int64_t bytes = 0;
  int64_t bytes_per_token = 0;  // read to decode one token, the draft head aside
};

// Consecutive layers that do the same.
struct LayerGroup {
  int first = 0;
  int last = 0;
  bool decoder = false;
  LayerKind kind = LayerKind::kWindow;
  int ratio = 0;
  int kv_source = -1;     // -1 for window layers
  int index_source = -1;  // likewise
  bool candidate_source = false;
  bool ngram = false;  // n-gram memory before the layer
};

struct CacheReport {
  int64_t kv_row_bytes = 0;
  int64_t index_key_bytes = 0;
  int64_t window_row_bytes = 0;
  int64_t block_bytes = 0;     // of 128 tokens
  double bytes_per_token = 0;  // block_bytes / 128
  int64_t sequence_bytes = 0;  // fixed: window rings, open groups, look-back
};

struct MachineReport {
  std::string kernels;  // the instruction set that would run
  int threads = 0;
  int64_t memory = 0;  // budget
};

// The files, when they are there.
struct FilesReport {
  int64_t files = 0;
  int64_t tensors = 0;
  int64_t bytes = 0;  // of the files, headers included
};

struct InspectReport {
  ModelConfig config;
  std::vector<LayerGroup> layers;
  std::vector<PartReport> parts;  // every ModelPart, in order
  CacheReport cache;
  MachineReport machine;
  // What a process would do with the budget, or why it would refuse to start.
  Result<MemoryPlan> memory = Internal("not planned");
  std::optional<FilesReport> files;

  int64_t num_tensors() const;
  int64_t num_bytes() const;
  int64_t bytes_per_token() const;
};

struct InspectOptions {
  Path path;  // a checkpoint directory, with or without weights, or a config.json
  Numerics numerics = Numerics::kRelease;
  int64_t max_model_len = 0;     // 0: what the model allows
  int threads = 0;               // 0: what the process may use
  uint64_t memory = 0;           // budget in bytes; 0: likewise
  uint64_t kv_cache_memory = 0;  // bytes of KV blocks; 0: the plan's choice
  std::string isa;               // DEEPINFER_ISA; empty: the best
};

// Reads the configuration and, where there are weights, holds their layout against it.
Result<InspectReport> Inspect(const InspectOptions& options);

}  // namespace deepinfer
