// Comparison of runs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "verify/run_plan.h"
#include "verify/state_difference.h"

namespace deepinfer {
namespace {

std::optional<std::string> InLogits(const StreamBits& found, const StreamBits& expected,
                                    int64_t vocab_size) {
  const int64_t first = std::max(found.first_row, expected.first_row);
  const auto values = [&](const StreamBits& bits) {
    return std::span(bits.logits)
        .subspan(static_cast<size_t>((first - bits.first_row) * vocab_size));
  };
  const std::span<const float> a = values(found);
  const std::span<const float> b = values(expected);
  if (a.size() != b.size()) {
    return fmt::format("found {} logits from row {} on, expected {}", a.size(), first, b.size());
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i])) continue;
    const auto at = static_cast<int64_t>(i);
    return fmt::format("row {} logit {}: found {:.9g}, expected {:.9g}", first + at / vocab_size,
                       at % vocab_size, a[i], b[i]);
  }
  return std::nullopt;
}

std::optional<std::string> InState(ModelInstance& model, const char* when, const std::string& found,
                                   const std::string& expected) {
  if (found == expected) return std::nullopt;
  const Result<SequenceState> a = model.RestoreSequence(found);
  const Result<SequenceState> b = model.RestoreSequence(expected);
  return fmt::format(
      "state after the {}: {}", when,
      a.ok() && b.ok() ? DescribeStateDifference(*a, *b) : "bytes that cannot be restored");
}

std::optional<std::string> InStream(ModelInstance& model, const StreamBits& found,
                                    const StreamBits& expected) {
  if (auto d = InLogits(found, expected, model.config().vocab_size)) return d;
  if (auto d = InState(model, "prompt", found.after_prompt, expected.after_prompt)) return d;
  return InState(model, "last token", found.after_decode, expected.after_decode);
}

}  // namespace

std::optional<std::string> FirstDifference(ModelInstance& model,
                                           const std::vector<StreamBits>& found,
                                           const std::vector<StreamBits>& expected) {
  if (found.size() != expected.size()) {
    return fmt::format("found {} sequences, expected {}", found.size(), expected.size());
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const std::optional<std::string> difference = InStream(model, found[i], expected[i]);
    if (!difference) continue;
    return found.size() == 1 ? *difference : fmt::format("sequence {} {}", i, *difference);
  }
  return std::nullopt;
}

}  // namespace deepinfer
