// The cases of a cases_replay.json: prefill modes, chunks and prefix hits on one checkpoint, with
// their logits and states in golden_replay.safetensors (tests/golden/tiny/README.md).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "kv/sequence_state.h"
#include "model/numerics.h"
#include "model/prefill.h"
#include "weights/safetensors.h"

namespace deepinfer {

// A state tensor: the case that stores it as CASE.state.NAME, and its first row.
struct ReplayStateTensor {
  std::string stored_by;
  int64_t first_row = 0;
};

struct ReplayCase {
  std::string tag;
  Numerics numerics = Numerics::kRelease;
  std::string prompt_name;
  PrefillOptions prefill;
  int64_t chunk = 0;    // 0: whole
  int64_t matched = 0;  // tokens that a cache held
  int64_t hit = 0;      // tokens of it that are used; 0: none
  ReplayRecord::Kind windows = ReplayRecord::Kind::kNone;
  int64_t steps = 0;
  WindowFloors floors;
  std::string stored_by;  // the case with the same bits that has the tensors; its own tag if none
  std::map<std::string, ReplayStateTensor>
      state;  // after the prefill: "window.L", "kv.L", "ikey.L"
};

struct ReplayFolder {
  std::map<std::string, std::vector<int32_t>> prompts;
  int64_t block = 0;  // of the hit rule
  std::vector<ReplayCase> cases;
  SafetensorsFile tensors;

  static bool IsIn(const Path& dir);
  static Result<ReplayFolder> Open(const Path& dir);
};

}  // namespace deepinfer
