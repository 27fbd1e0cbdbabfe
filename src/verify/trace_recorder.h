// Collects what a LayerObserver sees, under the names that golden files use.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/transformer.h"

namespace deepinfer {

// Rows of one traced tensor; rows of later Forward calls are appended.
struct TracedFloats {
  int64_t cols = 0;
  std::vector<float> values;  // [rows, cols]
};
struct TracedInts {
  int64_t cols = 0;
  std::vector<int32_t> values;  // [rows, cols]
};

class TraceRecorder : public LayerObserver {
 public:
  // Called for every layer's input, which it may overwrite; may be empty.
  using InputHook = std::function<void(int layer, int64_t rows, float* h, float* pre)>;
  explicit TraceRecorder(InputHook hook = nullptr) : hook_(std::move(hook)) {}

  void OnLayerInput(int layer, int64_t rows, float* h, float* pre) override;
  void OnValues(const char* name, int layer, int64_t rows, int64_t cols,
                const float* values) override;
  void OnIndices(const char* name, int layer, int64_t rows, int64_t cols,
                 const int32_t* values) override;

  // "layers.3", "layers.3.pre", "layers.3.attn", "gate_w_layers.3", "margin.sel_layers.2", ...
  const std::map<std::string, TracedFloats>& floats() const { return floats_; }
  // "sel_layers.3" (-1: none), "gate_idx_layers.3", "engram_rows_layers.1", "candidate_blocks" (-1:
  // none)
  const std::map<std::string, TracedInts>& ints() const { return ints_; }

 private:
  InputHook hook_;
  std::map<std::string, TracedFloats> floats_;
  std::map<std::string, TracedInts> ints_;
  std::vector<int32_t> pending_;  // a list whose lengths come next
  int64_t pending_cols_ = 0;
};

}  // namespace deepinfer
