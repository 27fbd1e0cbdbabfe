// Sampling defaults that a checkpoint recommends.
#pragma once

#include "base/status.h"
#include "io/file.h"
#include "sampling/params.h"

namespace deepinfer {

// temperature, top_p, top_k, min_p, repetition_penalty and do_sample of generation_config.json; the
// release's recommendation (temperature 1, top_p 0.95) when the directory has none.  CorruptData
// for values that are no numbers.
Result<SamplingParams> LoadGenerationDefaults(const Path& model_dir);

}  // namespace deepinfer
