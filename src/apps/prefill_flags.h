// --yoco-prefill-truncation-mode and --yoco-prefill-keep-tokens, with their environment names.
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

  void AddTo(CLI::App& app);
  PrefillOptions Options() const;
};

}  // namespace deepinfer
