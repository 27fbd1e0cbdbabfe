// Configurations of made-up checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "model/config.h"

namespace deepinfer {

enum class Preset {
  kTiny,      // runs in milliseconds: hidden 128, 8 layers, every feature
  kNano,      // the shape of the shipped model: hidden 192, 8 layers, 4,096 tokens
  kV41Slice,  // the released dimensions in 4 layers of 32 experts, about 9 GB, without vision
};

// What to change in a preset; unset: as it is.
struct PresetChanges {
  std::optional<int> layers;
  std::optional<int> experts;
  std::optional<int> draft_experts;
  std::optional<int> vocab_size;
  std::optional<int64_t> max_position_embeddings;
  bool no_ngram = false;
  bool no_draft = false;
  bool no_vision = false;
};

// Layers beyond a preset's own repeat the pattern of its decoder; fewer cut it short, and sources
// and targets that are cut off go with them.  InvalidArgument for changes that fit no model.
Result<ModelConfig> ConfigOf(Preset preset, const PresetChanges& changes);

// The text of a config.json that ModelConfig::Parse reads back as the same configuration.
std::string ConfigJson(const ModelConfig& config);

}  // namespace deepinfer
