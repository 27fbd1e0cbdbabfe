// Mixture of experts (model.md section 8): routed FP4 experts and one shared FP8 expert.
#pragma once

#include "base/status.h"
#include "model/step.h"

namespace deepinfer {

// step.x [rows, hidden] -> step.y.  Fails only when an expert cannot be acquired.
Status MixtureOfExperts(Step& step, int layer);

}  // namespace deepinfer
