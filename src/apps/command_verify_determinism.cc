#include "apps/command_verify_determinism.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/load_model.h"
#include "apps/model_dir.h"
#include "verify/determinism.h"

namespace deepinfer {
namespace {

std::string JsonReport(const std::vector<AxisReport>& reports) {
  nlohmann::ordered_json axes = nlohmann::ordered_json::array();
  for (const AxisReport& report : reports) {
    nlohmann::ordered_json axis = {{"axis", report.name},
                                   {"scope", report.scope},
                                   {"comparisons", report.comparisons},
                                   {"equal", !report.difference.has_value()},
                                   {"first_difference", nullptr},
                                   {"seconds", report.seconds}};
    if (report.difference) axis["first_difference"] = *report.difference;
    axes.push_back(std::move(axis));
  }
  return nlohmann::ordered_json{{"axes", axes}}.dump(2) + "\n";
}

struct Flags {
  DeterminismOptions options;
  bool json = false;
};

Status Run(const Flags& flags, const CommandContext& context) {
  ASSIGN_OR_RETURN(const Path dir, FindModelDir(context.global.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<ModelInstance> model,
                   ModelInstance::Load({.dir = dir,
                                        .numerics = context.global.numerics,
                                        .isa = ForcedIsa(),
                                        .threads = context.global.threads,
                                        .max_model_len = context.global.max_model_len,
                                        .max_sequences = kRunSequences}));
  const InterruptScope interrupt(model->context());
  const auto show = [&](const AxisReport& report) {
    return flags.json ? Status::Ok() : context.out.WriteNow(ReportText(report));
  };
  ASSIGN_OR_RETURN(const std::vector<AxisReport> reports,
                   VerifyDeterminism(*model, flags.options, show));
  if (flags.json) RETURN_IF_ERROR(context.out.Write(JsonReport(reports)));
  const auto differing = std::ranges::count_if(
      reports, [](const AxisReport& report) { return report.difference.has_value(); });
  if (differing == 0) return Status::Ok();
  return CorruptData(fmt::format("{}: found other bits on {} of {} axes, expected none",
                                 dir.string(), differing, reports.size()));
}

}  // namespace

void AddVerifyDeterminismCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<Flags>();
  CLI::App& app = registry.Add(
      {.name = "verify determinism",
       .summary = "computes the same tokens in every way and compares all bits",
       .examples = {"deepinfer verify determinism",
                    "deepinfer verify determinism --model /tmp/slice --tokens 280 --quick"}},
      [flags](const CommandContext& context) { return Run(*flags, context); });
  app.add_option("--tokens", flags->options.tokens,
                 "tokens of the prompt (0: enough for every axis, or 24 for weights above 1 GiB)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", flags->options.seed,
                 "of the tokens, and of the points where runs are interrupted")
      ->capture_default_str();
  app.add_flag("--quick", flags->options.quick, "fewer variants of every axis");
  app.add_flag("--json", flags->json, "the report as JSON");
}

}  // namespace deepinfer
