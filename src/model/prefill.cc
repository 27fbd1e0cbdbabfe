#include "model/prefill.h"

#include <algorithm>

namespace deepinfer {
namespace {

constexpr PrefillMode kModes[] = {PrefillMode::kFull, PrefillMode::kExact, PrefillMode::kMask,
                                  PrefillMode::kCompact};

int64_t CutOf(const PrefillOptions& options, int64_t prompt_len) {
  return std::max<int64_t>(0, prompt_len - options.keep);
}

}  // namespace

std::string_view PrefillModeName(PrefillMode mode) {
  switch (mode) {
    case PrefillMode::kFull:
      return "full";
    case PrefillMode::kExact:
      return "exact";
    case PrefillMode::kMask:
      return "mask";
    case PrefillMode::kCompact:
      return "compact";
  }
  return "?";
}

std::optional<PrefillMode> PrefillModeFromName(std::string_view name) {
  for (const PrefillMode mode : kModes) {
    if (PrefillModeName(mode) == name) return mode;
  }
  return std::nullopt;
}

int64_t ExactRows(const ModelConfig& config, int k) {
  const int64_t decoder_layers = config.num_layers - config.first_decoder_layer();
  const int64_t window = config.window_size;
  return window + (decoder_layers - 1 - k) * (window - 1);
}

int64_t KeptRows(const ModelConfig& config, const PrefillOptions& options, int64_t prompt_len) {
  switch (options.mode) {
    case PrefillMode::kFull:
      return prompt_len;
    case PrefillMode::kExact:
      return ExactRows(config, 0);
    case PrefillMode::kMask:
    case PrefillMode::kCompact:
      return options.keep;
  }
  return prompt_len;
}

int64_t ComputeFrom(const ModelConfig& config, const PrefillOptions& options, int64_t prompt_len,
                    int layer) {
  const int decoder = config.first_decoder_layer();
  if (layer < decoder) return 0;
  if (options.mode == PrefillMode::kCompact) return CutOf(options, prompt_len);
  if (options.mode != PrefillMode::kExact) return 0;
  const bool last = layer == config.num_layers - 1;
  const int64_t rows = last ? 1 : ExactRows(config, layer - decoder + 1);
  return std::max<int64_t>(0, prompt_len - rows);
}

void BeginPrompt(SequenceState& state, const PrefillOptions& options, int64_t prompt_len) {
  const bool cut = options.mode == PrefillMode::kMask || options.mode == PrefillMode::kCompact;
  state.prompt_len = prompt_len;
  state.floors.decoder = cut ? CutOf(options, prompt_len) : 0;
}

}  // namespace deepinfer
