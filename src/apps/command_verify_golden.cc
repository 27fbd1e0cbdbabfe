#include "apps/command_verify_golden.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/load_model.h"
#include "verify/golden.h"

namespace deepinfer {
namespace {

struct Flags {
  std::string dir;
  std::string weights;
  bool json = false;
};

std::string TextLine(const GoldenLine& line) {
  std::string figure = line.check == "release layers"
                           ? fmt::format("{:.3f} % differ", 100 * line.differing)
                           : fmt::format("max error {:.1e}", line.max_error);
  if (line.cases > 0) figure += fmt::format(", {} cases", line.cases);
  return fmt::format("{:<14} {:<15} {:<4} {:<28} {}\n", line.tag, line.check,
                     line.ok ? "ok" : "FAIL", figure, line.first);
}

std::string JsonReport(const std::vector<GoldenLine>& lines) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const GoldenLine& line : lines) {
    cases.push_back({{"case", line.tag},
                     {"check", line.check},
                     {"cases", std::max<int64_t>(line.cases, 1)},
                     {"ok", line.ok},
                     {"max_error", line.max_error},
                     {"differing", line.differing},
                     {"first_difference", line.first}});
  }
  return nlohmann::ordered_json{{"cases", cases}}.dump(2) + "\n";
}

Status Run(const Flags& flags, const CommandContext& context) {
  Status write_status;
  const auto show = [&](const GoldenLine& line) {
    if (!flags.json && write_status.ok()) write_status = context.out.WriteNow(TextLine(line));
  };
  ASSIGN_OR_RETURN(
      const std::vector<GoldenLine> lines,
      VerifyGolden({.dir = flags.dir, .weights_dir = flags.weights, .isa = ForcedIsa()}, show));
  RETURN_IF_ERROR(write_status);
  if (flags.json) RETURN_IF_ERROR(context.out.Write(JsonReport(lines)));
  const auto failed =
      std::count_if(lines.begin(), lines.end(), [](const GoldenLine& line) { return !line.ok; });
  if (failed == 0) return Status::Ok();
  return CorruptData(fmt::format("{}: found {} of {} checks different, expected none", flags.dir,
                                 failed, lines.size()));
}

}  // namespace

void AddVerifyGoldenCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<Flags>();
  CLI::App& app = registry.Add(
      {.name = "verify golden",
       .summary = "holds this program against a folder of recorded outputs",
       .examples = {"deepinfer verify golden tests/golden/tiny",
                    "deepinfer verify golden tests/golden/wide --weights tests/golden/tiny"}},
      [flags](const CommandContext& context) { return Run(*flags, context); });
  app.add_option(
         "dir", flags->dir,
         "folder with cases.json, golden_*.safetensors, and cases_replay.json if there are any")
      ->required();
  app.add_option("--weights", flags->weights,
                 "where the weights are, if not where cases.json says");
  app.add_flag("--json", flags->json, "the report as JSON");
}

}  // namespace deepinfer
