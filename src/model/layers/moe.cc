#include "model/layers/moe.h"

#include <algorithm>

#include "kernels/gated_ffn.h"
#include "kernels/ops.h"
#include "model/layers/linear.h"

namespace deepinfer {
namespace {

struct Routing {
  int32_t* experts;  // [rows, num_experts_per_token], best first
  float* weights;    // [rows, num_experts_per_token]
};

// s = sqrt(softplus(gate x)); the best of s + bias; weights from s alone.
Routing RouteRows(Step& step, int layer) {
  const ModelConfig& c = step.config();
  const MoeWeights& w = step.parts.weights->layers[static_cast<size_t>(layer)].moe;
  const int64_t k = c.num_experts_per_token;
  const Routing routing{.experts = step.scratch().Alloc<int32_t>(step.rows * k),
                        .weights = step.scratch().Alloc<float>(step.rows * k)};
  auto* logits = step.scratch().Alloc<float>(step.rows * c.num_experts);
  float* margins = step.observer != nullptr ? step.scratch().Alloc<float>(step.rows) : nullptr;
  LinearF32(step, Unquantized(step, step.x, step.rows, w.gate), w.gate, logits);
  Route(step.context,
        {.logits = logits,
         .bias = w.bias,
         .bias_image = w.bias_image,
         .is_image = step.is_image,
         .num_experts = c.num_experts,
         .top_k = c.num_experts_per_token,
         .scale = c.routed_scaling_factor,
         .experts = routing.experts,
         .weights = routing.weights,
         .margins = margins},
        step.rows);
  step.Note("gate_idx", layer, k, routing.experts);
  step.Note("gate_w", layer, k, routing.weights);
  if (margins != nullptr) step.Note("margin.gate_idx", layer, 1, margins);
  return routing;
}

// step.y += the experts' results, in their order.
void AddExperts(Step& step, std::span<const FfnExpert> experts) {
  const Operand x = Quantize(step, step.x, step.rows, experts.front().w1);
  GatedFfn(step.context, {.x = x.data,
                          .order = x.order,
                          .experts = experts,
                          .limit = step.config().swiglu_limit,
                          .round = step.round(),
                          .y = step.y});
}

FfnWeights WeightsOf(const ExpertLease& lease, const ModelConfig& c) {
  const auto view = [](const Fp4MatrixView& m, int64_t n, int64_t k) {
    return WeightView{
        .format = WeightFormat::kFp4, .data = m.codes, .scales = m.scales, .n = n, .k = k};
  };
  return {.w1 = view(lease.w1(), c.moe_intermediate_size, c.hidden_size),
          .w3 = view(lease.w3(), c.moe_intermediate_size, c.hidden_size),
          .w2 = view(lease.w2(), c.hidden_size, c.moe_intermediate_size)};
}

}  // namespace

Status MixtureOfExperts(Step& step, int layer) {
  const ModelConfig& c = step.config();
  const MoeWeights& w = step.parts.weights->layers[static_cast<size_t>(layer)].moe;
  const ScratchArena::Scope scope(step.scratch());
  const Routing routing = RouteRows(step, layer);
  // Ops leave work out once a stop was requested; experts that nobody chose must not be looked up.
  RETURN_IF_ERROR(CheckNotStopped(step.context));
  const ExpertPlan plan = PlanExperts(
      step.context, routing.experts, routing.weights,
      {.rows = step.rows, .top_k = c.num_experts_per_token, .num_experts = c.num_experts});
  std::vector<ExpertLease>& leases = step.leases;
  leases.clear();
  RETURN_IF_ERROR(step.parts.experts->Acquire(
      layer, {plan.experts, static_cast<size_t>(plan.num_experts)}, leases));

  // Sums run in ascending expert id, then the shared expert: the order is part of the result.
  std::fill_n(step.y, step.rows * c.hidden_size, 0.0f);
  auto* experts = step.scratch().Alloc<FfnExpert>(plan.num_experts);
  for (int32_t i = 0; i < plan.num_experts; ++i) {
    const FfnWeights weights = WeightsOf(leases[static_cast<size_t>(i)], c);
    experts[i] = {.w1 = weights.w1,
                  .w3 = weights.w3,
                  .w2 = weights.w2,
                  .index = plan.rows + plan.offsets[i],
                  .weights = plan.weights + plan.offsets[i],
                  .rows = plan.offsets[i + 1] - plan.offsets[i]};
  }
  AddExperts(step, {experts, static_cast<size_t>(plan.num_experts)});
  const FfnExpert shared{.w1 = w.shared.w1,
                         .w3 = w.shared.w3,
                         .w2 = w.shared.w2,
                         .index = nullptr,
                         .weights = nullptr,
                         .rows = step.rows};
  AddExperts(step, {&shared, 1});
  Scale(step.context, {.x = step.y, .factor = 1.0f, .round = step.round()},
        step.rows * c.hidden_size);
  leases.clear();
  step.Note("ffn", layer, c.hidden_size, step.y);
  return Status::Ok();
}

}  // namespace deepinfer
