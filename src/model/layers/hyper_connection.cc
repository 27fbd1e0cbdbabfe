#include "model/layers/hyper_connection.h"

#include "kernels/ops.h"
#include "model/layers/linear.h"

namespace deepinfer {

HyperMixes ComputeMixes(Step& step, const HyperConnectionWeights& weights) {
  const ModelConfig& c = step.config();
  const int64_t s = c.num_streams;
  const HyperMixes mixes{.pre = step.scratch().Alloc<float>(step.rows * s),
                         .post = step.scratch().Alloc<float>(step.rows * s),
                         .comb = step.scratch().Alloc<float>(step.rows * s * s)};
  auto* raw = step.scratch().Alloc<float>(step.rows * weights.fn.n);
  LinearF32(step, Unquantized(step, step.h, step.rows, weights.fn), weights.fn, raw);
  HcMixes(step.context,
          {.h = step.h,
           .raw = raw,
           .scale = weights.scale,
           .base = weights.base,
           .num_streams = c.num_streams,
           .dim = c.hidden_size,
           .rms_eps = c.rms_norm_eps,
           .hc_eps = c.hc_eps,
           .sinkhorn_iters = c.hc_sinkhorn_iters,
           .pre = mixes.pre,
           .post = mixes.post,
           .comb = mixes.comb},
          step.rows);
  return mixes;
}

void MixIn(Step& step, const float* pre) {
  HcPre(step.context,
        {.h = step.h,
         .pre = pre,
         .num_streams = step.config().num_streams,
         .dim = step.config().hidden_size,
         .round = step.round(),
         .y = step.x},
        step.rows);
}

void MixOut(Step& step, const HyperMixes& mixes) {
  HcPost(step.context,
         {.y = step.y,
          .post = mixes.post,
          .comb = mixes.comb,
          .num_streams = step.config().num_streams,
          .dim = step.config().hidden_size,
          .round = step.round(),
          .h = step.h},
         step.rows);
}

}  // namespace deepinfer
