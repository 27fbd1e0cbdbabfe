#include "apps/prefill_flags.h"

#include <CLI/CLI.hpp>

namespace deepinfer {

void PrefillFlags::AddTo(CLI::App& app) {
  app.add_option("--yoco-prefill-truncation-mode", mode,
                 "how much of a prompt goes through the decoder: full, exact, mask or compact")
      ->check(CLI::IsMember({"full", "exact", "mask", "compact"}))
      ->envname("DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE")
      ->capture_default_str();
  app.add_option("--yoco-prefill-keep-tokens", keep,
                 "prompt rows that mask and compact keep; at least the window")
      ->check(CLI::PositiveNumber)
      ->envname("DEEPINFER_YOCO_PREFILL_KEEP_TOKENS")
      ->capture_default_str();
  app.add_option("--chunk", chunk, "largest prefill chunk (0: the engine's choice)")
      ->check(CLI::NonNegativeNumber);
}

PrefillOptions PrefillFlags::Options() const {
  return {.mode = PrefillModeFromName(mode).value_or(PrefillMode::kCompact), .keep = keep};
}

}  // namespace deepinfer
