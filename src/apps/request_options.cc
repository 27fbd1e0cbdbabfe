#include "apps/request_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

namespace deepinfer {
namespace {

// "TOKEN:BIAS"
std::optional<std::pair<int32_t, float>> ParseLogitBias(const std::string& text) {
  const char* end = text.data() + text.size();
  int32_t token = 0;
  float bias = 0;
  const auto [after_token, token_error] = std::from_chars(text.data(), end, token);
  const bool colon = token_error == std::errc() && after_token != end && *after_token == ':';
  if (colon) {
    const auto [after_bias, bias_error] = std::from_chars(after_token + 1, end, bias);
    if (bias_error == std::errc() && after_bias == end) return std::pair(token, bias);
  }
  return std::nullopt;
}

void AddSamplingFlags(CLI::App& app, RequestOptions& options) {
  app.add_option("--temperature", options.temperature, "0: greedy");
  app.add_option("--top-p", options.top_p, "smallest set of tokens that reaches this probability");
  app.add_option("--top-k", options.top_k, "this many most likely tokens (0: all)");
  app.add_option("--min-p", options.min_p, "tokens at least this likely, relative to the best");
  app.add_option("--repetition-penalty", options.repetition_penalty,
                 "on tokens of prompt and output");
  app.add_option("--presence-penalty", options.presence_penalty, "on tokens of the output");
  app.add_option("--frequency-penalty", options.frequency_penalty, "per occurrence in the output");
  app.add_option_function<std::vector<std::string>>(
         "--logit-bias",
         [&options](const std::vector<std::string>& texts) {
           options.logit_bias.emplace();
           for (const std::string& text : texts)
             options.logit_bias->push_back(*ParseLogitBias(text));
         },
         "TOKEN:BIAS, may be repeated")
      ->check(CLI::Validator(
          [](std::string& text) {
            return ParseLogitBias(text) ? std::string()
                                        : fmt::format("found '{}', expected TOKEN:BIAS", text);
          },
          ""));
  app.add_option("--seed", options.seed,
                 "same seed, same output; without one it is drawn and reported");
}

template <typename T>
void Fill(std::optional<T>& value, const std::optional<T>& fallback) {
  if (!value) value = fallback;
}

template <typename T, typename U>
void Lay(const std::optional<T>& given, U& value) {
  if (given) value = *given;
}

}  // namespace

void RequestOptions::AddFlags(CLI::App& app) {
  AddSamplingFlags(app, *this);
  app.add_option("--max-tokens", max_tokens, "most tokens of output (0: the context's room)")
      ->check(CLI::NonNegativeNumber);
  app.add_option_function<std::vector<std::string>>(
      "--stop", [this](const std::vector<std::string>& texts) { stop = texts; },
      "end the output before this text; may be repeated");
  app.add_flag_callback(
      "--thinking", [this] { thinking = true; }, "let the model reason before it answers");
  app.add_option("--effort", effort, "reasoning effort: 1-100, low, high, xhigh or max");
  app.add_option("--system", system, "system text before the conversation");
}

void RequestOptions::FillFrom(const RequestOptions& defaults) {
  Fill(temperature, defaults.temperature);
  Fill(top_p, defaults.top_p);
  Fill(top_k, defaults.top_k);
  Fill(min_p, defaults.min_p);
  Fill(repetition_penalty, defaults.repetition_penalty);
  Fill(presence_penalty, defaults.presence_penalty);
  Fill(frequency_penalty, defaults.frequency_penalty);
  Fill(logit_bias, defaults.logit_bias);
  Fill(seed, defaults.seed);
  Fill(logprobs, defaults.logprobs);
  Fill(max_tokens, defaults.max_tokens);
  Fill(stop, defaults.stop);
  Fill(raw, defaults.raw);
  Fill(thinking, defaults.thinking);
  Fill(effort, defaults.effort);
  Fill(system, defaults.system);
}

SamplingOptions RequestOptions::Sampling() const {
  return {.temperature = temperature,
          .top_k = top_k,
          .top_p = top_p,
          .min_p = min_p,
          .repetition_penalty = repetition_penalty,
          .presence_penalty = presence_penalty,
          .frequency_penalty = frequency_penalty,
          .logit_bias = logit_bias.value_or(decltype(SamplingOptions::logit_bias)()),
          .seed = seed};
}

SamplingParams RequestOptions::SamplingOver(SamplingParams recommended) const {
  SamplingParams params = std::move(recommended);
  Lay(temperature, params.temperature);
  Lay(top_p, params.top_p);
  Lay(top_k, params.top_k);
  Lay(min_p, params.min_p);
  Lay(repetition_penalty, params.repetition_penalty);
  Lay(presence_penalty, params.presence_penalty);
  Lay(frequency_penalty, params.frequency_penalty);
  Lay(logit_bias, params.logit_bias);
  Lay(seed, params.seed);
  Lay(logprobs, params.num_logprobs);
  return params;
}

}  // namespace deepinfer
