// Steps of a loaded model: prefill by prompt length, decode by batch and context, with the share of
// time of each op.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/roofline.h"
#include "engine/model_instance.h"
#include "kernels/op_profile.h"

namespace deepinfer {

struct StepResult {
  std::string name;  // "prefill" or "decode"
  int64_t sequences = 1;
  int64_t context = 0;  // tokens before the step
  int64_t rows = 0;     // tokens of the step, all sequences together
  double ms = 0;        // median of a step
  double tokens_per_second = 0;
  double gmacs = 0;   // of matrix products
  double gbytes = 0;  // of weights
  std::string limit;  // "dram" or "bf16"
  double percent_of_limit = 0;
  OpProfile profile;  // of all measured steps together
  int steps = 0;
};

struct ModelBenchOptions {
  std::vector<int64_t> prompt_lens;  // prefill
  std::vector<int64_t> contexts;     // decode
  std::vector<int64_t> sequences;    // decode
  PrefillOptions prefill;
  int decode_steps = 16;
};

// ResourceExhausted when the KV memory of the model is too small for a wish.
Status BenchModel(ModelInstance& model, const Roofline& roofline, const ModelBenchOptions& options,
                  const std::function<void(const StepResult&)>& on_result);

// The ops of a profile, most expensive first, as "matmul fp4 41 % | ...".
std::string OpShares(const OpProfile& profile);

}  // namespace deepinfer
