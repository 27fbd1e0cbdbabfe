// Manifold-constrained hyper-connections (model.md section 5): S residual streams, mixed into one
// input before a sub-block and spread out again after it.
#pragma once

#include "model/step.h"

namespace deepinfer {

// The mixes of one sub-block, computed from the streams that enter it.
struct HyperMixes {
  float* pre;   // [rows, S]; read by the NEXT sub-block
  float* post;  // [rows, S]
  float* comb;  // [rows, S, S], from stream i into stream j
};

HyperMixes ComputeMixes(Step& step, const HyperConnectionWeights& weights);
// step.x = r(sum_j pre[j] * h[j])
void MixIn(Step& step, const float* pre);
// h[j] = r(post[j] * y + sum_i comb[i][j] * h[i])
void MixOut(Step& step, const HyperMixes& mixes);

}  // namespace deepinfer
