#include "sampling/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"
#include "kernels/math64.h"

namespace deepinfer {
namespace {

// What a draw is for; keeps streams of one (seed, choice, position) apart.
constexpr uint32_t kRacePurpose = 1;

// Weights are at most 1; a class has those of one sixteenth of an octave, the last one all below
// 2^-128.
constexpr size_t kWeightClasses = 2048;

size_t ClassOf(double weight) {
  constexpr uint64_t kOne = 0x3FF0;  // upper 16 bits of 1.0: exponent and four bits of mantissa
  return std::min<size_t>(kOne - (std::bit_cast<uint64_t>(weight) >> 48), kWeightClasses - 1);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// log of the sum of exp(logit), in ascending token id.
double LogTotal(std::span<const float> logits) {
  const double max = logits[static_cast<size_t>(ArgMax(logits))];
  double total = 0;
  for (const float logit : logits) total += ExpF64(static_cast<double>(logit) - max);
  return max + LogF64(total);
}

float LogprobFrom(std::span<const float> logits, int32_t token, double log_total) {
  return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(token)]) - log_total);
}

}  // namespace

double RaceNoise(uint64_t seed, uint32_t choice, int64_t position, int32_t token) {
  // One block serves two tokens.  Positions stay below 2^40 and choices below 2^16.
  const auto pos = static_cast<uint64_t>(position);
  const PhiloxBlock block =
      Philox(seed, {static_cast<uint32_t>(token) >> 1, static_cast<uint32_t>(pos),
                    static_cast<uint32_t>(pos >> 32), choice << 16 | kRacePurpose});
  const size_t half = (static_cast<uint32_t>(token) & 1) * 2;
  return -LogF64(UniformOpen(block[half], block[half + 1]));
}

bool Sampler::ByRank(const Candidate& a, const Candidate& b) {
  return a.weight > b.weight || (a.weight == b.weight && a.token < b.token);
}

int32_t ArgMax(std::span<const float> logits) {
  float best = -std::numeric_limits<float>::infinity();
  size_t token = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > best) {
      best = logits[i];
      token = i;
    }
  }
  return static_cast<int32_t>(token);
}

Sampler::Sampler(int64_t vocab_size) {
  candidates_.reserve(static_cast<size_t>(vocab_size));
  border_.reserve(static_cast<size_t>(vocab_size));
  class_sums_.reserve(kWeightClasses);
}

std::optional<int32_t> Sampler::Choose(std::span<const float> logits, const SamplingParams& params,
                                       const RaceKey& key) {
  const int32_t best_token = ArgMax(logits);
  const float max = logits[static_cast<size_t>(best_token)];
  if (!(max > -kInfinity)) return std::nullopt;
  if (params.temperature == 0) return best_token;
  CollectCandidates(logits, max, params);
  if (params.top_p < 1) TruncateToTopP(params.top_p);
  if (params.min_p > 0) DropBelowMinP(params.min_p);
  int32_t winner = -1;
  double best = -1;
  for (const Candidate& candidate : candidates_) {
    const double score =
        candidate.weight / RaceNoise(key.seed, key.choice, key.position, candidate.token);
    if (score > best || (score == best && candidate.token < winner)) {
      best = score;
      winner = candidate.token;
    }
  }
  CHECK(winner >= 0);
  return winner;
}

// Temperature and top-k.  Leaves the candidates in ascending token id.
void Sampler::CollectCandidates(std::span<const float> logits, float max,
                                const SamplingParams& params) {
  candidates_.clear();
  for (size_t token = 0; token < logits.size(); ++token) {
    // The best one by its own name: infinity less infinity is no number.
    const double below = static_cast<double>(logits[token]) - static_cast<double>(max);
    const double weight = logits[token] == max ? 1 : ExpF64(below / params.temperature);
    if (weight > 0) candidates_.push_back({weight, static_cast<int32_t>(token)});
  }
  if (params.top_k <= 0 || static_cast<size_t>(params.top_k) >= candidates_.size()) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + params.top_k, candidates_.end(),
                   ByRank);
  candidates_.resize(static_cast<size_t>(params.top_k));
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
}

// Keeps the smallest set of best candidates whose probabilities reach top_p.  Only the class of
// almost equal weights in which it is reached is sorted: a flat distribution keeps most of the
// vocabulary.
void Sampler::TruncateToTopP(double top_p) {
  class_sums_.assign(kWeightClasses, 0);
  for (const Candidate& candidate : candidates_) {
    class_sums_[ClassOf(candidate.weight)] += candidate.weight;
  }
  double total = 0;
  for (const double sum : class_sums_) total += sum;
  double sum = 0;
  size_t border = 0;
  while (border < kWeightClasses && sum + class_sums_[border] < top_p * total) {
    sum += class_sums_[border++];
  }
  border_.clear();
  size_t kept = 0;
  for (const Candidate& candidate : candidates_) {
    const size_t c = ClassOf(candidate.weight);
    if (c < border) candidates_[kept++] = candidate;
    if (c == border) border_.push_back(candidate);
  }
  candidates_.resize(kept);
  std::sort(border_.begin(), border_.end(), ByRank);
  for (const Candidate& candidate : border_) {
    if (sum >= top_p * total && !candidates_.empty()) break;
    sum += candidate.weight;
    candidates_.push_back(candidate);
  }
}

// Drops candidates less likely than min_p times the best one.
void Sampler::DropBelowMinP(double min_p) {
  double best = 0;
  for (const Candidate& candidate : candidates_) best = std::max(best, candidate.weight);
  std::erase_if(candidates_,
                [&](const Candidate& candidate) { return candidate.weight < min_p * best; });
}

float Sampler::Logprobs(std::span<const float> logits, int32_t token, std::span<TokenLogprob> top) {
  const double log_total = LogTotal(logits);
  candidates_.clear();
  for (size_t id = 0; id < logits.size(); ++id) {
    const double rank = std::isnan(logits[id]) ? -kInfinity : static_cast<double>(logits[id]);
    candidates_.push_back({rank, static_cast<int32_t>(id)});
  }
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(top.size()),
                    candidates_.end(), ByRank);
  for (size_t i = 0; i < top.size(); ++i) {
    const int32_t best = candidates_[i].token;
    top[i] = {.token = best, .logprob = LogprobFrom(logits, best, log_total)};
  }
  return LogprobFrom(logits, token, log_total);
}

float LogprobOf(std::span<const float> logits, int32_t token) {
  return LogprobFrom(logits, token, LogTotal(logits));
}

}  // namespace deepinfer
