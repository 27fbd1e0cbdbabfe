// The promise "same tokens, same bits, however they are computed" as a matrix: axes of plans that
// must agree in every logit and in the whole state.  Runs on any checkpoint; tests and the command
// `verify determinism` use the same axes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model_instance.h"
#include "verify/run_plan.h"

namespace deepinfer {

struct DeterminismOptions {
  int64_t tokens = 0;  // of the prompt; 0: DefaultTokens()
  uint64_t seed = 1;   // of tokens, of hits and of interruptions
  bool quick = false;  // fewer variants of every axis
};

// Plans of one kind that promise the bits of the first one.
struct Axis {
  std::string name;   // "chunks"
  std::string scope;  // what is run, or why nothing is
  std::vector<TokenStream> streams;
  RunPlan reference;
  std::vector<RunPlan> variants;
};

struct AxisReport {
  std::string name;
  std::string scope;
  int64_t comparisons = 0;
  std::optional<std::string> difference;  // the first one, with the plan that has it
  double seconds = 0;
};

// A line of text, and a second one for a difference.
std::string ReportText(const AxisReport& report);

// A prompt that every axis can use, or for a checkpoint above a gigabyte one that is affordable.
int64_t DefaultTokens(const ModelInstance& model);

// InvalidArgument when the prompt does not fit the model's context.
Result<std::vector<Axis>> DeterminismAxes(const ModelInstance& model,
                                          const DeterminismOptions& options);

// How a plan is run; tests put a perturbed one in the place of RunStreams.
using PlanRunner = std::function<Result<std::vector<StreamBits>>(
    ModelInstance& model, const std::vector<TokenStream>& streams, const RunPlan& plan)>;

// Stops an axis at its first difference.
Result<AxisReport> RunAxis(ModelInstance& model, const Axis& axis,
                           const PlanRunner& run = RunStreams);

// Every axis; `on_report` sees each report as it is known.
Result<std::vector<AxisReport>> VerifyDeterminism(
    ModelInstance& model, const DeterminismOptions& options,
    const std::function<Status(const AxisReport&)>& on_report);

}  // namespace deepinfer
