#include "sched/step_plan.h"

namespace deepinfer {

std::string_view RefuseReasonText(RefuseReason reason) {
  switch (reason) {
    case RefuseReason::kDeadline:
      return "waited past the time at which its first token was due";
    case RefuseReason::kNoBlocks:
      return "found too few free KV blocks to go on, and nothing else that could give some back";
  }
  return "?";
}

void StepPlan::Clear() {
  refusals.clear();
  preemptions.clear();
  admissions.clear();
  rows.clear();
  load = {};
  predicted_us = 0;
}

}  // namespace deepinfer
