#include "apps/sampling_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

namespace deepinfer {
namespace {

// "TOKEN:BIAS"
Result<std::pair<int32_t, float>> ParseLogitBias(const std::string& text) {
  const char* end = text.data() + text.size();
  int32_t token = 0;
  float bias = 0;
  const auto [after_token, token_error] = std::from_chars(text.data(), end, token);
  const bool colon = token_error == std::errc() && after_token != end && *after_token == ':';
  if (colon) {
    const auto [after_bias, bias_error] = std::from_chars(after_token + 1, end, bias);
    if (bias_error == std::errc() && after_bias == end) return std::pair(token, bias);
  }
  return InvalidArgument(fmt::format("--logit-bias: found '{}', expected TOKEN:BIAS", text));
}

template <typename T, typename U>
void Lay(const std::optional<T>& given, U& value) {
  if (given) value = *given;
}

}  // namespace

void SamplingFlags::AddTo(CLI::App& app) {
  app.add_option("--temperature", temperature, "0: greedy");
  app.add_option("--top-p", top_p, "smallest set of tokens that reaches this probability");
  app.add_option("--top-k", top_k, "this many most likely tokens (0: all)");
  app.add_option("--min-p", min_p, "tokens at least this likely, relative to the best");
  app.add_option("--repetition-penalty", repetition_penalty, "on tokens of prompt and output");
  app.add_option("--presence-penalty", presence_penalty, "on tokens of the output");
  app.add_option("--frequency-penalty", frequency_penalty, "per occurrence in the output");
  app.add_option("--logit-bias", logit_bias, "TOKEN:BIAS, may be repeated");
  app.add_option("--seed", seed, "same seed, same output; without one it is drawn and reported");
}

Result<SamplingParams> SamplingFlags::Over(SamplingParams defaults) const {
  SamplingParams params = std::move(defaults);
  Lay(temperature, params.temperature);
  Lay(top_p, params.top_p);
  Lay(top_k, params.top_k);
  Lay(min_p, params.min_p);
  Lay(repetition_penalty, params.repetition_penalty);
  Lay(presence_penalty, params.presence_penalty);
  Lay(frequency_penalty, params.frequency_penalty);
  if (seed) params.seed = seed;
  for (const std::string& text : logit_bias) {
    ASSIGN_OR_RETURN(const auto bias, ParseLogitBias(text));
    params.logit_bias.push_back(bias);
  }
  return params;
}

}  // namespace deepinfer
