#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "bench/engine_bench.h"
#include "bench/svg_plot.h"

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

std::string QuantilesLine(std::string_view name, const Quantiles& ms) {
  return fmt::format("{:<22}{:>11.2f}{:>11.2f}{:>11.2f}{:>11.2f}\n", name, ms.p50, ms.p90, ms.p99,
                     ms.max);
}

Json QuantilesJson(const Quantiles& ms) {
  return {{"p50", ms.p50}, {"p90", ms.p90}, {"p99", ms.p99}, {"max", ms.max}};
}

// A row of the step table.
struct SizeRow {
  int64_t steps = 0;
  double tokens = 0;  // of a step, on average
  double ms = 0;      // the same
  double tokens_per_second = 0;
};

std::vector<SizeRow> SizeRows(const EngineStatistics& figures) {
  std::vector<SizeRow> rows;
  for (const StepsOfSize& alike : figures.steps_by_size) {
    if (alike.num_steps == 0) continue;
    const auto steps = static_cast<double>(alike.num_steps);
    const auto tokens = static_cast<double>(alike.tokens);
    rows.push_back({.steps = alike.num_steps,
                    .tokens = tokens / steps,
                    .ms = 1e3 * alike.seconds / steps,
                    .tokens_per_second = tokens / alike.seconds});
  }
  return rows;
}

Json FiguresJson(const EngineStatistics& figures) {
  return {{"steps", figures.num_steps},
          {"prompt_tokens", figures.prompt_tokens},
          {"output_tokens", figures.output_tokens},
          {"step_seconds", figures.step_seconds},
          {"sampling_seconds", figures.sampling_seconds},
          {"between_seconds", figures.between_seconds},
          {"idle_share", figures.idle_share()}};
}

}  // namespace

std::string EngineBenchText(const EngineBenchResult& result) {
  const EngineStatistics& figures = result.figures;
  std::string text = fmt::format(
      "load {}: {} requests in {:.2f} s, {:.2f} a second; prompt {} tokens, {:.1f} a second; "
      "output {} tokens, {:.1f} a second\n",
      result.load.name, result.load.requests, result.seconds, result.requests_per_second,
      figures.prompt_tokens, result.prompt_tokens_per_second, figures.output_tokens,
      result.output_tokens_per_second);
  text += fmt::format("{:<22}{:>11}{:>11}{:>11}{:>11}\n", "ms", "p50", "p90", "p99", "max");
  text += QuantilesLine("to the first token", result.first_token_ms);
  text += QuantilesLine("between tokens", result.between_tokens_ms);
  text += QuantilesLine("of a request", result.request_ms);
  const double share = figures.step_seconds > 0 ? 100 / figures.step_seconds : 0;
  text += fmt::format(
      "{} steps, {:.2f} s: {:.2f} % choosing tokens, {:.2f} % between; compute threads idle "
      "{:.2f} %\n",
      figures.num_steps, figures.step_seconds, share * figures.sampling_seconds,
      share * figures.between_seconds, 100 * figures.idle_share());
  text += fmt::format("{:>14}{:>8}{:>12}{:>12}\n", "tokens a step", "steps", "ms", "tok/s");
  for (const SizeRow& row : SizeRows(figures)) {
    text += fmt::format("{:>14.1f}{:>8}{:>12.2f}{:>12.1f}\n", row.tokens, row.steps, row.ms,
                        row.tokens_per_second);
  }
  return text;
}

std::string EngineBenchJson(const EngineBenchResult& result) {
  Json table = Json::array();
  for (const SizeRow& row : SizeRows(result.figures)) {
    table.push_back({{"steps", row.steps},
                     {"tokens", row.tokens},
                     {"ms", row.ms},
                     {"tokens_per_second", row.tokens_per_second}});
  }
  const Json json = {{"load", Json::parse(EngineLoadJson(result.load))},
                     {"seconds", result.seconds},
                     {"requests_per_second", result.requests_per_second},
                     {"prompt_tokens_per_second", result.prompt_tokens_per_second},
                     {"output_tokens_per_second", result.output_tokens_per_second},
                     {"first_token_ms", QuantilesJson(result.first_token_ms)},
                     {"between_tokens_ms", QuantilesJson(result.between_tokens_ms)},
                     {"request_ms", QuantilesJson(result.request_ms)},
                     {"engine", FiguresJson(result.figures)},
                     {"steps_by_size", std::move(table)}};
  return json.dump(2) + "\n";
}

std::string StepSizeSvg(const EngineBenchResult& result) {
  const std::vector<SizeRow> rows = SizeRows(result.figures);
  const PlotFrame frame;
  LogAxis x{.low = 0, .high = 1, .from = frame.left, .to = frame.width - frame.right};
  LogAxis y{.low = 0, .high = 1, .from = frame.height - frame.bottom, .to = frame.top};
  for (const SizeRow& row : rows) {
    x.Widen(row.tokens);
    y.Widen(row.ms);
    y.Widen(row.tokens_per_second);
  }
  std::string svg = SvgBegin(frame, fmt::format("steps of load {}", result.load.name));
  svg += SvgGrid(x, y);
  const auto curve = [&](double SizeRow::*value, std::string_view color, std::string_view unit) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const double px = x.At(rows[i].tokens);
      const double py = y.At(rows[i].*value);
      if (i > 0) {
        svg += SvgLine(x.At(rows[i - 1].tokens), y.At(rows[i - 1].*value), px, py,
                       fmt::format("stroke=\"{}\" stroke-width=\"2\"", color));
      }
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"><title>{:.1f} tokens, {} steps: "
          "{:.2f} {}</title></circle>\n",
          px, py, color, rows[i].tokens, rows[i].steps, rows[i].*value, unit);
    }
  };
  curve(&SizeRow::ms, "#c33", "ms");
  curve(&SizeRow::tokens_per_second, "#26c", "tok/s");
  svg += SvgText((x.from + x.to) / 2, frame.height - 16, "tokens of a step",
                 "text-anchor=\"middle\" fill=\"#111\"");
  svg += SvgSideText(18, (y.from + y.to) / 2, "ms of a step", "fill=\"#c33\"");
  svg += SvgSideText(frame.width - 18, (y.from + y.to) / 2, "tokens a second", "fill=\"#26c\"");
  return svg.append(kSvgEnd);
}

}  // namespace deepinfer
