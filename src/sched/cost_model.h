// How long a step takes: per phase t = fixed + token * tokens + context * sum of contexts, where a
// row's context is the number of tokens that it sees.  A step's time is the sum over its phases.
//
// The six costs are fitted while steps run, by recursive least squares:
//   * relative errors, so that short and long steps count alike;
//   * costs are never negative: what would be is left out of the fit (backward elimination);
//   * old steps are forgotten, but only by the phases that a step has: a long answer does not
//     wash out what is known of prompts;
//   * a step far off the others counts as much as one at the edge of the usual scatter (Huber), so
//     that a stall does not shake the fit and a machine that became slower still wins.
// Before any measurement the costs are a guess on the slow side; the first one scales the whole
// guess to the speed of the machine, later ones tell its parts apart.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace deepinfer {

enum class Phase : uint8_t { kPrefill, kDecode };
inline constexpr size_t kNumPhases = 2;

struct PhaseLoad {
  int64_t tokens = 0;
  double context = 0;  // sum over the rows of the tokens that each sees, itself included

  friend bool operator==(const PhaseLoad&, const PhaseLoad&) = default;
};

// What a step computes.
struct StepLoad {
  std::array<PhaseLoad, kNumPhases> phases;

  PhaseLoad& operator[](Phase phase) { return phases[static_cast<size_t>(phase)]; }
  const PhaseLoad& operator[](Phase phase) const { return phases[static_cast<size_t>(phase)]; }
  // Rows [pos, pos + tokens) of one sequence.
  void Add(Phase phase, int64_t pos, int64_t tokens);
  bool empty() const { return phases[0].tokens == 0 && phases[1].tokens == 0; }

  friend bool operator==(const StepLoad&, const StepLoad&) = default;
};

// Microseconds, none negative.
struct PhaseCost {
  double fixed_us = 0;    // of a step that has the phase at all
  double token_us = 0;    // per row
  double context_us = 0;  // per row and token that it sees
};

struct StepCosts {
  PhaseCost prefill;
  PhaseCost decode;
};

// What is assumed before any measurement: a machine of 100 GB/s and 1 TFLOP/s with a model of
// 10 GB and 10 GFLOP per token, twice as slow.  All parts must be positive: they are also the shape
// that costs keep where no measurement tells them apart.
inline constexpr StepCosts kUnmeasuredCosts = {
    .prefill = {.fixed_us = 200'000, .token_us = 20'000, .context_us = 1},
    .decode = {.fixed_us = 200'000, .token_us = 20'000, .context_us = 1},
};

class CostModel {
 public:
  explicit CostModel(const StepCosts& assumed = kUnmeasuredCosts);

  // 0 for an empty load.
  double PredictUs(const StepLoad& load) const;
  // Most of `most` prompt rows from position `pos` on that a step of this load can take besides, to
  // stay within budget_us.
  int64_t MostPrefillTokens(const StepLoad& load, int64_t pos, int64_t most,
                            double budget_us) const;

  // A step of this load took so long.  A time that is no positive number is ignored, as is an
  // empty load.
  void Observe(const StepLoad& load, double elapsed_us);

  StepCosts costs() const;
  int64_t num_observed() const { return num_observed_; }
  // Usual relative distance between prediction and measurement.
  double scatter() const { return scatter_; }

 private:
  static constexpr size_t kParts = 3 * kNumPhases;
  using Parts = std::array<double, kParts>;

  // The times that the assumed costs give to each part.
  Parts PartsOf(const StepLoad& load) const;
  // How much a step with this relative error counts; learns the usual scatter from it.
  double WeightOf(double error);
  void Forget(const StepLoad& load);
  void Fit();

  Parts assumed_;  // us; see StepCosts
  Parts factors_;  // fitted cost = assumed_ * factors_
  // Normal equations of the factors, over relative errors; without the pull to 1.
  std::array<Parts, kParts> gram_{};
  Parts moment_{};
  double scatter_;
  int64_t num_observed_ = 0;
};

}  // namespace deepinfer
