// n-gram memory (Engram, model.md section 9): table rows keyed by hashes of the last few token
// classes, gated into the residual streams before some layers.
#pragma once

#include "base/status.h"
#include "model/step.h"

namespace deepinfer {

// Hashes every row of the step for every n-gram layer and fetches the table rows, before any layer
// runs: the hash needs token ids only.  Fills step.ngram_codes and step.ngram_scales, and asks for
// the rows of the sequences' upcoming tokens.
Status FetchNgramRows(Step& step);

// h[j] = r(h[j] + gate_j * value); image rows keep their streams.
void NgramMemory(Step& step, int layer);

}  // namespace deepinfer
