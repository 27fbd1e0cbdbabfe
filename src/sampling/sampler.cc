#include "sampling/sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "kernels/math64.h"

namespace deepinfer {
namespace {

// What a draw is for; keeps streams of one (seed, choice, position) apart.
constexpr uint32_t kRacePurpose = 1;

// Candidates sorted at first when looking for the top-p set; grown eightfold until the set fits.
constexpr size_t kFirstSorted = 64;

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
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

Sampler::Sampler(int64_t vocab_size) { candidates_.reserve(static_cast<size_t>(vocab_size)); }

int32_t Sampler::Choose(std::span<const float> logits, const SamplingParams& params,
                        const RaceKey& key) {
  if (params.temperature == 0) return ArgMax(logits);
  CollectCandidates(logits, params);
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
void Sampler::CollectCandidates(std::span<const float> logits, const SamplingParams& params) {
  const float max = *std::max_element(logits.begin(), logits.end());
  CHECK(max > -std::numeric_limits<float>::infinity());
  candidates_.clear();
  for (size_t token = 0; token < logits.size(); ++token) {
    const double weight = ExpF64((static_cast<double>(logits[token]) - static_cast<double>(max)) /
                                 params.temperature);
    if (weight > 0) candidates_.push_back({weight, static_cast<int32_t>(token)});
  }
  if (params.top_k <= 0 || static_cast<size_t>(params.top_k) >= candidates_.size()) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + params.top_k, candidates_.end(),
                   ByRank);
  candidates_.resize(static_cast<size_t>(params.top_k));
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
}

// Keeps the smallest set of best candidates whose probabilities reach top_p.
void Sampler::TruncateToTopP(double top_p) {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double sum = 0;
  size_t kept = 0;
  for (size_t sorted = kFirstSorted; sum < top_p * total; sorted *= 8) {
    const size_t end = std::min(sorted, candidates_.size());
    std::partial_sort(candidates_.begin() + static_cast<ptrdiff_t>(kept),
                      candidates_.begin() + static_cast<ptrdiff_t>(end), candidates_.end(), ByRank);
    while (kept < end && sum < top_p * total) sum += candidates_[kept++].weight;
    if (end == candidates_.size()) break;  // rounding may leave the sum short of the total
  }
  candidates_.resize(std::max<size_t>(kept, 1));
}

// Drops candidates less likely than min_p times the best one.
void Sampler::DropBelowMinP(double min_p) {
  double best = 0;
  for (const Candidate& candidate : candidates_) best = std::max(best, candidate.weight);
  std::erase_if(candidates_,
                [&](const Candidate& candidate) { return candidate.weight < min_p * best; });
}

SampledToken Logprobs(std::span<const float> logits, int32_t token, int count) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += ExpF64(static_cast<double>(logit) - max);
  const double log_total = max + LogF64(total);
  const auto logprob = [&](int32_t id) {
    return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(id)]) - log_total);
  };
  SampledToken result{.token = token, .logprob = logprob(token), .top_logprobs = {}};
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto kept = std::min<ptrdiff_t>(count, static_cast<ptrdiff_t>(ids.size()));
  std::partial_sort(ids.begin(), ids.begin() + kept, ids.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  for (ptrdiff_t i = 0; i < kept; ++i) {
    result.top_logprobs.push_back(
        {ids[static_cast<size_t>(i)], logprob(ids[static_cast<size_t>(i)])});
  }
  return result;
}

}  // namespace deepinfer
