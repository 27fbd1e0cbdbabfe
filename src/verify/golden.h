// Holds a model against a folder of golden outputs, by the rules of tests/golden/README.md:
//
//   fp32      logits within 1e-4, traces within 1e-4 of the tensor's largest magnitude, selections
//   and
//             expert sets equal wherever the recorded margin exceeds 1e-5, greedy tokens equal
//   release   leading rows that no summation order changes: within 2e-3; layer by layer on the
//   golden
//             stream: at most 5 % of the values and 1 % of the selections differ
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/file.h"

namespace deepinfer {

// One line of the report.
struct GoldenLine {
  std::string tag;
  std::string check;  // "fp32", "release rows", "release layers", "fp32 replay", "release replay"
  int64_t cases = 0;  // replay: how many the line sums up; 0: it is a single one
  bool ok = true;
  double max_error =
      0;  // fp32, release rows: largest deviation, in units of its tolerance's measure
  double differing = 0;  // release layers: share of values that differ at all
  std::string first;     // what differs first, and where; empty: nothing
};

struct GoldenOptions {
  Path dir;
  Path weights_dir;  // empty: as cases.json says
  std::string isa;
};

// Runs every case; `on_line` sees each line as it is known.  An error means that the folder or the
// checkpoint could not be read; differences are lines that are not ok.
Result<std::vector<GoldenLine>> VerifyGolden(const GoldenOptions& options,
                                             const std::function<void(const GoldenLine&)>& on_line);

}  // namespace deepinfer
