#include "verify/trace_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace deepinfer {
namespace {

// The golden files' name of a value.
std::string GoldenName(std::string_view name, int layer) {
  if (layer < 0) return std::string(name);
  if (name == "h") return fmt::format("layers.{}", layer);
  if (name == "pre" || name == "attn" || name == "ffn") {
    return fmt::format("layers.{}.{}", layer, name);
  }
  if (name == "candidate_blocks" || name == "margin.candidate_mask") return std::string(name);
  return fmt::format("{}_layers.{}", name, layer);
}

template <typename Traced, typename T>
void Append(Traced& traced, int64_t rows, int64_t cols, const T* values) {
  traced.cols = cols;
  traced.values.insert(traced.values.end(), values, values + rows * cols);
}

}  // namespace

void TraceRecorder::OnLayerInput(int layer, int64_t rows, float* h, float* pre) {
  if (hook_) hook_(layer, rows, h, pre);
}

void TraceRecorder::OnValues(const char* name, int layer, int64_t rows, int64_t cols,
                             const float* values) {
  Append(floats_[GoldenName(name, layer)], rows, cols, values);
}

void TraceRecorder::OnIndices(const char* name, int layer, int64_t rows, int64_t cols,
                              const int32_t* values) {
  const std::string_view view(name);
  // Lists of varying length come as the list, then the lengths; the rest of a row becomes -1.
  if (view == "sel" || view == "candidate_blocks") {
    pending_.assign(values, values + rows * cols);
    pending_cols_ = cols;
    return;
  }
  if (view == "num_sel" || view == "num_candidate_blocks") {
    for (int64_t row = 0; row < rows; ++row) {
      const auto first = pending_.begin() + row * pending_cols_;
      std::fill(first + values[row], first + pending_cols_, -1);
    }
    Append(ints_[GoldenName(view.substr(4), layer)], rows, pending_cols_, pending_.data());
    return;
  }
  Append(ints_[GoldenName(name, layer)], rows, cols, values);
}

}  // namespace deepinfer
