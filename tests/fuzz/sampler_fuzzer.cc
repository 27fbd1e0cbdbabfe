// Arbitrary parameters, logits and seen tokens: the sampler never crashes, never chooses a token
// that was excluded, and chooses one whenever one is left.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/check.h"
#include "sampling/penalties.h"
#include "sampling/sampler.h"

namespace {

using deepinfer::SamplingParams;

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

bool Allowed(float logit) { return logit > kForbidden; }  // false for NaN

// More likely by more than rounding can hide: probabilities that are equal go by token id.
bool IsBetter(float logit, float other, const SamplingParams& params) {
  const double by = static_cast<double>(logit) - static_cast<double>(other);
  return params.temperature == 0 ? by > 0 : by / params.temperature > 1e-9;
}

double AnyDouble(FuzzedDataProvider& in) {
  return in.ConsumeBool() ? in.ConsumeFloatingPointInRange<double>(0, 2)
                          : std::bit_cast<double>(in.ConsumeIntegral<uint64_t>());
}

SamplingParams AnyParams(FuzzedDataProvider& in, int64_t vocab) {
  SamplingParams params{.temperature = AnyDouble(in),
                        .top_k = in.ConsumeIntegralInRange<int>(-1, 20),
                        .top_p = AnyDouble(in),
                        .min_p = AnyDouble(in),
                        .repetition_penalty = AnyDouble(in),
                        .presence_penalty = AnyDouble(in),
                        .frequency_penalty = AnyDouble(in),
                        .num_logprobs = in.ConsumeIntegralInRange<int>(-1, 8)};
  while (in.ConsumeBool()) {
    params.logit_bias.emplace_back(in.ConsumeIntegralInRange<int32_t>(-1, static_cast<int>(vocab)),
                                   static_cast<float>(AnyDouble(in)));
  }
  return params;
}

std::vector<float> AnyLogits(FuzzedDataProvider& in, int64_t vocab) {
  std::vector<float> logits;
  for (int64_t i = 0; i < vocab; ++i) {
    const uint8_t kind = in.ConsumeIntegral<uint8_t>();
    if (kind < 32) {
      logits.push_back(kForbidden);
    } else if (kind < 64) {
      logits.push_back(std::bit_cast<float>(in.ConsumeIntegral<uint32_t>()));
    } else {
      logits.push_back(in.ConsumeFloatingPointInRange<float>(-30, 30));
    }
  }
  return logits;
}

void CheckChoice(const std::vector<float>& raw, const std::vector<float>& adjusted,
                 const SamplingParams& params, std::optional<int32_t> chosen) {
  int64_t allowed = 0;
  int64_t better = 0;
  for (const float logit : adjusted) {
    allowed += Allowed(logit) ? 1 : 0;
    better += chosen && IsBetter(logit, adjusted[static_cast<size_t>(*chosen)], params) ? 1 : 0;
  }
  CHECK_EQ(chosen.has_value(), allowed > 0);
  if (!chosen) return;
  CHECK(*chosen >= 0 && *chosen < static_cast<int32_t>(raw.size()));
  CHECK(Allowed(raw[static_cast<size_t>(*chosen)]));
  CHECK(Allowed(adjusted[static_cast<size_t>(*chosen)]));
  if (params.temperature == 0) CHECK_EQ(better, 0);
  if (params.top_k > 0) CHECK_LT(better, params.top_k);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider in(data, size);
  const auto vocab = in.ConsumeIntegralInRange<int64_t>(1, 200);
  const SamplingParams params = AnyParams(in, vocab);
  if (!params.Validate(vocab).ok()) return 0;
  deepinfer::TokenCounts counts(vocab);
  const auto any_token = [&] {
    return in.ConsumeIntegralInRange<int32_t>(0, static_cast<int32_t>(vocab) - 1);
  };
  while (in.ConsumeBool()) counts.AddPrompt(any_token());
  while (in.ConsumeBool()) counts.AddOutput(any_token());
  const std::vector<float> raw = AnyLogits(in, vocab);
  std::vector<float> adjusted = raw;
  counts.Apply(params, adjusted);
  deepinfer::Sampler sampler(vocab);
  const std::optional<int32_t> chosen =
      sampler.Choose(adjusted, params,
                     {.seed = in.ConsumeIntegral<uint64_t>(),
                      .position = in.ConsumeIntegralInRange<int64_t>(0, int64_t{1} << 40)});
  CheckChoice(raw, adjusted, params, chosen);
  std::vector<deepinfer::TokenLogprob> top(
      static_cast<size_t>(std::clamp<int64_t>(params.num_logprobs, 0, vocab)));
  if (chosen) (void)sampler.Logprobs(raw, *chosen, top);
  return 0;
}
