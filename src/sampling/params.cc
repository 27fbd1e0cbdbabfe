#include "sampling/params.h"

#include <fmt/format.h>

#include <cmath>

namespace deepinfer {
namespace {

constexpr int kMaxLogprobs = 1000;

Status Expect(bool holds, const char* name, double found, const char* expected) {
  if (holds) return Status::Ok();
  return InvalidArgument(fmt::format("{}: found {}, expected {}", name, found, expected));
}

}  // namespace

Status SamplingParams::Validate(int64_t vocab_size) const {
  // Written so that NaN fails every test.
  RETURN_IF_ERROR(Expect(temperature >= 0 && temperature <= 100, "temperature", temperature,
                         "a number from 0 (greedy) to 100"));
  RETURN_IF_ERROR(Expect(top_k >= 0, "top_k", top_k, "0 (all) or a positive count"));
  RETURN_IF_ERROR(Expect(top_p > 0 && top_p <= 1, "top_p", top_p, "a number in (0, 1]"));
  RETURN_IF_ERROR(Expect(min_p >= 0 && min_p < 1, "min_p", min_p, "a number in [0, 1)"));
  RETURN_IF_ERROR(Expect(repetition_penalty > 0 && repetition_penalty <= 100, "repetition_penalty",
                         repetition_penalty, "a number in (0, 100]"));
  RETURN_IF_ERROR(Expect(presence_penalty >= -2 && presence_penalty <= 2, "presence_penalty",
                         presence_penalty, "a number in [-2, 2]"));
  RETURN_IF_ERROR(Expect(frequency_penalty >= -2 && frequency_penalty <= 2, "frequency_penalty",
                         frequency_penalty, "a number in [-2, 2]"));
  RETURN_IF_ERROR(Expect(num_logprobs >= -1 && num_logprobs <= kMaxLogprobs, "logprobs",
                         num_logprobs, "a count from 0 to 1000"));
  for (const auto& [token, bias] : logit_bias) {
    RETURN_IF_ERROR(Expect(token >= 0 && token < vocab_size, "logit_bias token", token,
                           "an id of the vocabulary"));
    RETURN_IF_ERROR(
        Expect(bias >= -100 && bias <= 100, "logit_bias", bias, "a number in [-100, 100]"));
  }
  return Status::Ok();
}

}  // namespace deepinfer
