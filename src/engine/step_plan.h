// Which rows go into the next step.  A pure decision: numbers in, numbers out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace deepinfer {

// What one running sequence could put into a step.
struct StepNeed {
  int64_t prompt_left = 0;  // prompt rows that are not computed; 0: it decodes, one row a step
  int64_t chunk = 0;        // most prompt rows in one step; 0: as many as fit
  bool paused = false;      // takes no part
};

// The rows of one sequence in a step.
struct StepShare {
  size_t sequence = 0;  // index into the needs
  int64_t rows = 0;     // at least 1

  friend bool operator==(const StepShare&, const StepShare&) = default;
};

// Fills `plan`: one row of every sequence that decodes, so that no prompt delays an answer that has
// begun; then prompts, first come first served, until max_rows are reached.  Both in the order of
// the needs, which is that of admission.
void PlanStep(std::span<const StepNeed> needs, int64_t max_rows, std::vector<StepShare>& plan);

}  // namespace deepinfer
