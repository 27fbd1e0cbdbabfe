// How much of a prompt goes through the decoder half (model.md section 7.7).
//
//   full     every layer on every row: the definition
//   exact    the same bits from fewer rows: decoder layer D+k sees the last W + (n-1-k)(W-1)
//   compact  the last `keep` rows go through the decoder, and its layers after D see no window row
//            before them; approximate when the prompt is longer
//   mask     the same function as compact with every row computed: the same bits for the kept rows
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kv/sequence_state.h"
#include "model/config.h"

namespace deepinfer {

enum class PrefillMode : uint8_t { kFull, kExact, kMask, kCompact };

std::string_view PrefillModeName(PrefillMode mode);
std::optional<PrefillMode> PrefillModeFromName(std::string_view name);

struct PrefillOptions {
  PrefillMode mode = PrefillMode::kCompact;
  int64_t keep = 140;  // window + two verify widths of 6; at least the window

  static PrefillOptions Full() { return {.mode = PrefillMode::kFull}; }
};

// Rows of a prompt that decoder layer D+k needs in exact mode.
int64_t ExactRows(const ModelConfig& config, int k);

// K of the prefix hit rule: trailing rows whose encoder rows must belong to the computed suffix.
int64_t KeptRows(const ModelConfig& config, const PrefillOptions& options, int64_t prompt_len);

// First position of a prompt whose row goes through layer `layer`; earlier rows that enter the
// layer only leave their window row (and compressed entries) there.
int64_t ComputeFrom(const ModelConfig& config, const PrefillOptions& options, int64_t prompt_len,
                    int layer);

// Tells a new sequence how long its prompt is, and sets the window floor that the mode implies.
void BeginPrompt(SequenceState& state, const PrefillOptions& options, int64_t prompt_len);

}  // namespace deepinfer
