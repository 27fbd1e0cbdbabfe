// How a Step comes to be and how it ends: memory and views at the start, commits at the end.
// Private to the model.
#pragma once

#include "base/status.h"
#include "model/step.h"

namespace deepinfer {

struct StepRequest {
  ExecContext& context;
  const TransformerParts& parts;
  std::vector<ExpertLease>& leases;
  LayerObserver* observer;
  const ForwardBatch& batch;
  float* main_hidden;
  const RopeTable& window_rope;
  const RopeTable& compressed_rope;
};

// Reserves KV blocks and lays out the step in scratch memory.  ResourceExhausted when blocks run
// out. Precondition: rows continue their sequences (CHECKed).
Result<Step> BeginStep(const StepRequest& request);

// Hands everything that the step wrote to the sequence states.
void CommitStep(Step& step);

// Drops the rows that do not go through `layer` (they have left their window row there); false when
// none is left.  step.h, x, selections and positions of the others move together.
bool NarrowRows(Step& step, int layer);

// DSpark's input (model.md section 10): r(mean of the streams) of a target layer, before its block.
void NoteDraftTarget(Step& step, int layer);

}  // namespace deepinfer
