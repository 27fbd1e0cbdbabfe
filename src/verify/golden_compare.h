// Comparisons of traced tensors with golden ones.  Private to verify.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/config.h"
#include "verify/golden.h"
#include "verify/trace_recorder.h"
#include "weights/safetensors.h"

namespace deepinfer {

// Tolerances of tests/golden/README.md.
inline constexpr double kFp32Tolerance = 1e-4;
inline constexpr double kAgreeTolerance = 2e-3;
inline constexpr double kMaxDifferingValues = 0.05;
inline constexpr double kMaxDifferingSelections = 0.01;

inline std::span<const float> Floats(const TensorView& tensor) {
  return {reinterpret_cast<const float*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(float)};
}

// The traces of one case in a golden file.
struct GoldenTraces {
  const SafetensorsFile& tensors;
  const std::string& tag;
  const ModelConfig& config;

  // Null when the file has no such trace.
  const TensorView* Find(const std::string& name) const {
    return tensors.Find(tag + ".trace." + name);
  }
  // [rows] score gap of a choice, from the file; empty: not recorded.
  std::vector<float> MarginOf(const std::string& name) const;
};

// Notes a difference; the first one is kept.
void Differs(GoldenLine& line, std::string what);

// Every golden trace against the recorded one: floats within `tolerance` of the golden tensor's
// largest magnitude; sets equal where the margin is clear.
void CompareTraces(const GoldenTraces& golden, const TraceRecorder& recorded, double tolerance,
                   GoldenLine& line);

struct DifferenceCount {
  int64_t values = 0;
  int64_t differing_values = 0;
  int64_t selections = 0;
  int64_t differing_selections = 0;

  double ShareOfValues() const {
    return values == 0 ? 0 : static_cast<double>(differing_values) / static_cast<double>(values);
  }
  double ShareOfSelections() const {
    return selections == 0
               ? 0
               : static_cast<double>(differing_selections) / static_cast<double>(selections);
  }
};

// How many values of streams and sub-block outputs, and how many selections and expert sets, are
// not equal at all.  Table rows must be equal.
DifferenceCount CountDifferences(const GoldenTraces& golden, const TraceRecorder& recorded,
                                 GoldenLine& line);

}  // namespace deepinfer
