#include "sched/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace deepinfer {
namespace {

// Weight that a step keeps after the next one of its phases: about fifty steps count.
constexpr double kMemory = 0.98;
// Pull of each factor to the assumed shape, in squared relative errors: a hundred thousandth of a
// step, felt only where no measurement says anything.
constexpr double kPull = 1e-5;
// Steps before scatter is known well enough to call one an outlier.
constexpr int64_t kWarmUp = 8;
// An error beyond so many times the usual scatter counts as one at that edge.
constexpr double kEdge = 3;
constexpr double kFirstScatter = 0.1;
constexpr double kLeastScatter = 0.01;
constexpr double kScatterRate = 0.05;
// A prediction is trusted as the measure of relative errors within this factor of the measurement.
constexpr double kTrustedFactor = 4;

// Solves the pulled normal equations for the parts in `used`; the others become 0.
template <size_t n>
void SolveFor(const std::array<bool, n>& used, const std::array<std::array<double, n>, n>& gram,
              const std::array<double, n>& moment, std::array<double, n>& factors) {
  // Cholesky of the used rows, which are positive definite through the pull.
  std::array<std::array<double, n>, n> lower{};
  std::array<double, n> solution{};
  for (size_t i = 0; i < n; ++i) {
    if (!used[i]) continue;
    double rhs = moment[i] + kPull;
    for (size_t j = 0; j <= i; ++j) {
      if (!used[j]) continue;
      double sum = gram[i][j] + (i == j ? kPull : 0);
      for (size_t k = 0; k < j; ++k) sum -= lower[i][k] * lower[j][k];
      lower[i][j] = i == j ? std::sqrt(std::max(sum, kPull * kPull)) : sum / lower[j][j];
    }
    for (size_t k = 0; k < i; ++k) rhs -= lower[i][k] * solution[k];
    solution[i] = rhs / lower[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    factors[i] = 0;
    if (!used[i]) continue;
    double sum = solution[i];
    for (size_t k = i + 1; k < n; ++k) sum -= lower[k][i] * factors[k];
    factors[i] = sum / lower[i][i];
  }
}

}  // namespace

void StepLoad::Add(Phase phase, int64_t pos, int64_t tokens) {
  PhaseLoad& load = (*this)[phase];
  const auto rows = static_cast<double>(tokens);
  load.tokens += tokens;
  load.context += rows * static_cast<double>(pos) + rows * (rows + 1) / 2;
}

CostModel::CostModel(const StepCosts& assumed)
    : assumed_{assumed.prefill.fixed_us, assumed.prefill.token_us, assumed.prefill.context_us,
               assumed.decode.fixed_us,  assumed.decode.token_us,  assumed.decode.context_us},
      scatter_(kFirstScatter) {
  for (const double part : assumed_) CHECK_GT(part, 0.0);
  factors_.fill(1);
}

CostModel::Parts CostModel::PartsOf(const StepLoad& load) const {
  Parts parts{};
  for (size_t p = 0; p < kNumPhases; ++p) {
    const PhaseLoad& phase = load.phases[p];
    if (phase.tokens == 0) continue;
    parts[3 * p] = assumed_[3 * p];
    parts[3 * p + 1] = assumed_[3 * p + 1] * static_cast<double>(phase.tokens);
    parts[3 * p + 2] = assumed_[3 * p + 2] * phase.context;
  }
  return parts;
}

double CostModel::PredictUs(const StepLoad& load) const {
  const Parts parts = PartsOf(load);
  return std::inner_product(parts.begin(), parts.end(), factors_.begin(), 0.0);
}

int64_t CostModel::MostPrefillTokens(const StepLoad& load, int64_t pos, int64_t most,
                                     double budget_us) const {
  const auto fits = [&](int64_t tokens) {
    StepLoad with = load;
    with.Add(Phase::kPrefill, pos, tokens);
    return PredictUs(with) <= budget_us;
  };
  int64_t good = 0;
  int64_t bad = most + 1;  // costs are not negative, so what fits is a range from 0
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

void CostModel::Observe(const StepLoad& load, double elapsed_us) {
  if (load.empty() || !std::isfinite(elapsed_us) || elapsed_us <= 0) return;
  if (num_observed_++ == 0) {
    const double speed = elapsed_us / PredictUs(load);
    for (double& part : assumed_) part *= speed;
  }
  const double predicted = PredictUs(load);
  const double unit =
      std::clamp(predicted, elapsed_us / kTrustedFactor, elapsed_us * kTrustedFactor);
  const double weight = WeightOf(std::abs(elapsed_us - predicted) / unit);
  Forget(load);
  const Parts parts = PartsOf(load);
  for (size_t i = 0; i < kParts; ++i) {
    const double scaled = weight * parts[i] / (unit * unit);
    for (size_t j = 0; j < kParts; ++j) gram_[i][j] += scaled * parts[j];
    moment_[i] += scaled * elapsed_us;
  }
  Fit();
}

double CostModel::WeightOf(double error) {
  if (num_observed_ <= kWarmUp) return 1;
  const double edge = kEdge * scatter_;
  scatter_ += kScatterRate * (std::min(error, edge) - scatter_);
  scatter_ = std::max(scatter_, kLeastScatter);
  return error > edge ? edge / error : 1;
}

void CostModel::Forget(const StepLoad& load) {
  // With D the square roots of what each part keeps, G becomes D G D, which stays positive
  // semidefinite.  The moment follows so that the fit stays where it is: m = G f + rest becomes
  // D G D f + D D rest.
  Parts keep;
  for (size_t i = 0; i < kParts; ++i) {
    keep[i] = load.phases[i / 3].tokens > 0 ? std::sqrt(kMemory) : 1.0;
  }
  for (size_t i = 0; i < kParts; ++i) {
    double before = 0;
    double after = 0;
    for (size_t j = 0; j < kParts; ++j) {
      before += gram_[i][j] * factors_[j];
      gram_[i][j] *= keep[i] * keep[j];
      after += gram_[i][j] * factors_[j];
    }
    moment_[i] = after + keep[i] * keep[i] * (moment_[i] - before);
  }
}

void CostModel::Fit() {
  std::array<bool, kParts> used;
  used.fill(true);
  while (true) {
    SolveFor(used, gram_, moment_, factors_);
    const auto least = std::min_element(factors_.begin(), factors_.end());
    if (*least >= 0) return;
    used[static_cast<size_t>(least - factors_.begin())] = false;
  }
}

StepCosts CostModel::costs() const {
  Parts fitted;
  for (size_t i = 0; i < kParts; ++i) fitted[i] = assumed_[i] * factors_[i];
  return {.prefill = {.fixed_us = fitted[0], .token_us = fitted[1], .context_us = fitted[2]},
          .decode = {.fixed_us = fitted[3], .token_us = fitted[4], .context_us = fitted[5]}};
}

}  // namespace deepinfer
