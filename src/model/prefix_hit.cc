#include "model/prefix_hit.h"

#include <algorithm>

namespace deepinfer {
namespace {

// Draft length 5 and the token that it starts from.
constexpr int64_t kVerifyWidth = 6;

int64_t RowsAgain(const ModelConfig& config, ReplayRecord::Kind kind) {
  switch (kind) {
    case ReplayRecord::Kind::kNone:
    case ReplayRecord::Kind::kSnapshot:
      return 0;
    case ReplayRecord::Kind::kBounded:
      return config.window_size;
    case ReplayRecord::Kind::kExact:
      return int64_t{config.window_size} * (config.first_decoder_layer() + 1);
  }
  return 0;
}

}  // namespace

UsableHit FindUsableHit(const PrefixMatch& match,
                        FunctionRef<bool(int64_t position)> has_snapshot) {
  const int64_t tokens = std::min(match.matched - kVerifyWidth, match.prompt_len - match.kept_rows);
  const int64_t hit = std::max<int64_t>(0, tokens) / match.block * match.block;
  for (const int64_t position : {hit, hit - match.block}) {
    if (position > 0 && has_snapshot(position)) return {.len = position, .has_windows = true};
  }
  return {.len = hit > match.window ? hit : 0, .has_windows = false};
}

ReplayRecord PlanReplay(const ModelConfig& config, ReplayRecord::Kind kind, int64_t hit_len) {
  return {.kind = kind, .start = std::max<int64_t>(0, hit_len - RowsAgain(config, kind))};
}

}  // namespace deepinfer
