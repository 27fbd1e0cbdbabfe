// The options of the public engine in the words of the engine behind it.
#pragma once

#include "base/status.h"
#include "deepinfer/engine.h"
#include "engine/engine_loop.h"
#include "engine/model_instance.h"
#include "engine/request.h"
#include "model/prefill.h"
#include "sampling/params.h"

namespace deepinfer {

// InvalidArgument names the option, what was found and what was expected.
Status CheckOptions(const EngineOptions& options);

// Of checked options.
ModelOptions ModelOptionsOf(const EngineOptions& options);
LoopOptions LoopOptionsOf(const EngineOptions& options);
PrefillOptions PrefillOptionsOf(const EngineOptions& options);

// The given parameters laid over those that the checkpoint recommends.
SamplingParams SamplingOver(SamplingParams recommended, const Request& request);

}  // namespace deepinfer
