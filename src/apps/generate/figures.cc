#include "apps/generate/figures.h"

#include <fmt/format.h>

#include "base/machine.h"
#include "inspect/render.h"

namespace deepinfer {
namespace {

double PerSecond(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string PeakMemory() { return ShortBytes(static_cast<int64_t>(PeakMemoryBytes())); }

}  // namespace

std::string FiguresOf(const GenerationResult& result, const PrefillOptions& prefill) {
  const auto output_len = std::ssize(result.tokens);
  const int64_t computed = result.prompt_len - result.reused_len;
  const std::string reused =
      result.reused_len > 0 ? fmt::format(" ({} kept)", result.reused_len) : "";
  // The first token comes out of the prefill; the others took a step each.
  return fmt::format(
      "[prompt {} tokens{}, {:.2f} s, {:.1f} tok/s, {} | output {} tokens, {:.2f} s, {:.1f} tok/s "
      "| {} | seed {} | peak memory {}]",
      result.prompt_len, reused, result.prefill_seconds,
      PerSecond(computed, result.prefill_seconds), PrefillModeName(prefill.mode), output_len,
      result.decode_seconds, PerSecond(output_len - 1, result.decode_seconds),
      FinishReasonName(result.finish_reason), result.seed, PeakMemory());
}

std::string FiguresOf(const JsonlSummary& summary, const PrefillOptions& prefill) {
  return fmt::format(
      "[{} lines, {} failed | prompt {} tokens, {} | output {} tokens | {:.2f} s, {:.1f} output "
      "tok/s | peak memory {}]",
      summary.lines, summary.failed, summary.prompt_tokens, PrefillModeName(prefill.mode),
      summary.output_tokens, summary.seconds, PerSecond(summary.output_tokens, summary.seconds),
      PeakMemory());
}

}  // namespace deepinfer
