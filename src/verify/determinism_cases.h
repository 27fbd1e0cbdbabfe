// Test support: checkpoints of the source tree on which the determinism matrix runs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verify/determinism.h"

namespace deepinfer {

// Folders below the source tree.
struct DeterminismCheckpoint {
  const char* dir;
  const char* weights_dir;
  Numerics numerics = Numerics::kRelease;
};

inline constexpr DeterminismCheckpoint kTiny{"tests/golden/tiny", "tests/golden/tiny"};
inline constexpr DeterminismCheckpoint kTinyFp32{"tests/golden/tiny", "tests/golden/tiny",
                                                 Numerics::kFp32};
// The weights of tiny with window 128.
inline constexpr DeterminismCheckpoint kWide{"tests/golden/wide", "tests/golden/tiny"};
inline constexpr DeterminismCheckpoint kWideFp32{"tests/golden/wide", "tests/golden/tiny",
                                                 Numerics::kFp32};
inline constexpr DeterminismCheckpoint kNano{"models/nano", "models/nano"};
inline constexpr DeterminismCheckpoint kNanoFp32{"models/nano", "models/nano", Numerics::kFp32};

inline std::unique_ptr<ModelInstance> LoadForRuns(const DeterminismCheckpoint& checkpoint) {
  const Path root = DEEPINFER_SOURCE_DIR;
  Result<std::unique_ptr<ModelInstance>> model =
      ModelInstance::Load({.dir = root / checkpoint.dir,
                           .weights_dir = root / checkpoint.weights_dir,
                           .numerics = checkpoint.numerics,
                           .max_sequences = kRunSequences});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *std::move(model) : nullptr;
}

// Runs the axes of these names (all, when there are none); every one must be equal in every bit.
// Returns the number of comparisons.
inline int64_t ExpectEqualAxes(ModelInstance& model, const DeterminismOptions& options,
                               const std::vector<std::string_view>& names = {}) {
  const Result<std::vector<Axis>> axes = DeterminismAxes(model, options);
  EXPECT_TRUE(axes.ok()) << axes.status().message();
  int64_t comparisons = 0;
  for (const Axis& axis : axes.ok() ? *axes : std::vector<Axis>()) {
    if (!names.empty() && std::ranges::find(names, axis.name) == names.end()) continue;
    const Result<AxisReport> report = RunAxis(model, axis);
    EXPECT_TRUE(report.ok()) << axis.name << ": " << report.status().message();
    if (!report.ok()) continue;
    EXPECT_FALSE(report->difference.has_value())
        << options.tokens << " tokens, " << axis.name << ": " << report->difference.value_or("");
    comparisons += report->comparisons;
  }
  return comparisons;
}

// What the length of a prompt decides: where chunks, windows and prefill modes cut.
inline const std::vector<std::string_view> kLengthAxes = {"chunks", "exact = full",
                                                          "mask = compact", "short compact = full"};

}  // namespace deepinfer
