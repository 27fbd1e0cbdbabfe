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

// What both kinds of answer say of themselves.
template <typename T>
std::string Line(const T& answer, int64_t reused_len, const PrefillOptions& prefill) {
  const auto output_len = std::ssize(answer.tokens);
  const std::string reused = reused_len > 0 ? fmt::format(" ({} kept)", reused_len) : "";
  // The first token comes out of the prefill; the others took a step each.
  return fmt::format(
      "[prompt {} tokens{}, {:.2f} s, {:.1f} tok/s, {} | output {} tokens, {:.2f} s, {:.1f} tok/s "
      "| {} | seed {} | peak memory {}]",
      answer.prompt_len, reused, answer.prefill_seconds,
      PerSecond(answer.prompt_len - reused_len, answer.prefill_seconds),
      PrefillModeName(prefill.mode), output_len, answer.decode_seconds,
      PerSecond(output_len - 1, answer.decode_seconds), FinishReasonName(answer.finish_reason),
      answer.seed, PeakMemory());
}

}  // namespace

std::string FiguresOf(const Answer& answer, const PrefillOptions& prefill) {
  return Line(answer, 0, prefill);
}

std::string FiguresOf(const GenerationResult& result, const PrefillOptions& prefill) {
  return Line(result, result.reused_len, prefill);
}

std::string FiguresOf(const JsonlSummary& summary, const PrefillOptions& prefill) {
  return fmt::format(
      "[{} lines, {} failed | prompt {} tokens, {} | output {} tokens | {:.2f} s, {:.1f} output "
      "tok/s | peak memory {}]",
      summary.lines, summary.failed, summary.prompt_tokens, PrefillModeName(prefill.mode),
      summary.output_tokens, summary.seconds, PerSecond(summary.output_tokens, summary.seconds),
      PeakMemory());
}

std::string OpTable(const EngineStatistics& statistics) {
  if (statistics.ops.empty()) return "";
  double total = 0;
  for (const OpTime& op : statistics.ops) total += op.seconds;
  std::string table = fmt::format("{:<14}{:>12}{:>10}{:>9}\n", "op", "ms", "calls", "share");
  for (const OpTime& op : statistics.ops) {
    table += fmt::format("{:<14}{:>12.2f}{:>10}{:>8.1f}%\n", op.name, op.seconds * 1e3, op.calls,
                         100 * op.seconds / total);
  }
  return table;
}

}  // namespace deepinfer
