// --yoco-prefill-truncation-mode and --yoco-prefill-keep-tokens with their environment names, and
// --chunk.
#pragma once

#include <cstdint>
#include <string>

#include "model/prefill.h"

namespace CLI {
class App;
}

namespace deepinfer {

struct PrefillFlags {
  std::string mode = std::string(PrefillModeName(PrefillOptions{}.mode));
  int64_t keep = PrefillOptions{}.keep;
  int64_t chunk = 0;

  void AddTo(CLI::App& app);
  PrefillOptions Options() const;
};

}  // namespace deepinfer
