// Chooses the token of a position by the race (sampling.md section 4):
//
//   token = argmax_v p(v) / E(seed, choice, position, v)
//
// p is the distribution after every transformation of SamplingParams, E exponential noise from the
// counter-based generator.  The winner is distributed as p, and depends on nothing but the logits,
// the parameters and the four numbers: not on batch mates, drafts, preemption or threads.  Greedy
// is the same race with E = 1; ties go to the lower id.  Sums are fp64, in an order that the logits
// alone decide.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sampling/params.h"

namespace deepinfer {

// Exponentially distributed, positive.  choice: index of the completion among n of one request.
double RaceNoise(uint64_t seed, uint32_t choice, int64_t position, int32_t token);

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;  // log-softmax of the model's own logits
};

struct RaceKey {
  uint64_t seed = 0;
  uint32_t choice = 0;
  int64_t position = 0;  // of the token that is chosen
};

// Holds nothing but work buffers, allocated when it is made: one serves any number of sequences.
// Not thread-safe.
class Sampler {
 public:
  explicit Sampler(int64_t vocab_size);

  // logits: [vocab_size] after penalties and mask.  -inf forbids a token, and so does NaN, which
  // only a damaged checkpoint brings about.  Nothing when every token is forbidden.
  std::optional<int32_t> Choose(std::span<const float> logits, const SamplingParams& params,
                                const RaceKey& key);
  // logits: [vocab_size], the model's own.  Returns the log-softmax of `token` and fills `top` with
  // the best tokens, at most vocab_size, best first (ties: lower id first).
  float Logprobs(std::span<const float> logits, int32_t token, std::span<TokenLogprob> top);

 private:
  struct Candidate {
    double weight;  // exp((logit - max) / temperature), not normalised; for Logprobs the logit
    int32_t token;
  };
  void CollectCandidates(std::span<const float> logits, float max, const SamplingParams& params);
  void TruncateToTopP(double top_p);
  void DropBelowMinP(double min_p);
  static bool ByRank(const Candidate& a, const Candidate& b);

  std::vector<Candidate> candidates_;
  // Of TruncateToTopP:
  std::vector<Candidate> border_;   // the class in which top_p is reached
  std::vector<double> class_sums_;  // of weights, heaviest class first
};

// Log-softmax of raw logits for `token`.
float LogprobOf(std::span<const float> logits, int32_t token);

// Lowest id among the largest logits; NaN is none of them.
int32_t ArgMax(std::span<const float> logits);

}  // namespace deepinfer
