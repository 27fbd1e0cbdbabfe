// A folder of golden cases laid out like tests/golden/tiny: cases.json and one safetensors file of
// expected tensors for each arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "model/numerics.h"
#include "weights/safetensors.h"

namespace deepinfer {

// Expectations of a case in one arithmetic.
struct GoldenRun {
  int64_t steps = 0;
  std::vector<int32_t> greedy;  // [steps + 1]
  int64_t agree_rows = 0;       // leading logit rows that no summation order changes
};

struct GoldenCase {
  std::string tag;
  std::vector<int32_t> prompt;
  std::vector<int> token_types;  // [prompt] or empty: -1 text, 0 start, 1 image, 2 newline, 3 end
  bool released_index_keys = false;  // made with the published decode loop's quirk
  std::optional<GoldenRun> release;
  std::optional<GoldenRun> fp32;
};

struct GoldenFolder {
  Path dir;
  Path weights_dir;  // where cases.json says, or dir
  std::vector<GoldenCase> cases;
  std::optional<SafetensorsFile> release;
  std::optional<SafetensorsFile> fp32;

  static Result<GoldenFolder> Open(const Path& dir);
};

}  // namespace deepinfer
