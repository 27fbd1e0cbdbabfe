#include "engine/step_plan.h"

#include <algorithm>

namespace deepinfer {

void PlanStep(std::span<const StepNeed> needs, int64_t max_rows, std::vector<StepShare>& plan) {
  plan.clear();
  int64_t room = max_rows;
  for (size_t i = 0; i < needs.size() && room > 0; ++i) {
    if (needs[i].prompt_left > 0 || needs[i].paused) continue;
    plan.push_back({.sequence = i, .rows = 1});
    --room;
  }
  for (size_t i = 0; i < needs.size() && room > 0; ++i) {
    if (needs[i].paused) continue;
    int64_t rows = std::min(needs[i].prompt_left, room);
    if (needs[i].chunk > 0) rows = std::min(rows, needs[i].chunk);
    if (rows == 0) continue;
    plan.push_back({.sequence = i, .rows = rows});
    room -= rows;
  }
}

}  // namespace deepinfer
