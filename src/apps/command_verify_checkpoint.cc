#include "apps/command_verify_checkpoint.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/model_dir.h"
#include "apps/progress.h"
#include "base/machine.h"
#include "inspect/render.h"
#include "inspect/scan.h"
#include "model/manifest.h"
#include "model/ngram_layout.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {
namespace {

constexpr uint64_t kMaxNgramFileBytes = uint64_t{256} << 20;

struct VerifyFlags {
  bool json = false;
};

// Files beside the weights; a checkpoint may come without them.
Status CheckCompanions(const Path& dir, const ModelConfig& config) {
  if (const Path path = dir / "tokenizer.json"; FileExists(path)) {
    ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(path));
    if (tokenizer.vocab_size() > config.vocab_size) {
      return CorruptData(fmt::format("{}: found {} tokens, expected at most vocab_size, {}",
                                     path.string(), tokenizer.vocab_size(), config.vocab_size));
    }
  }
  const Path path = dir / "engram.json";
  if (config.ngram_layers.empty() || !FileExists(path)) return Status::Ok();
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxNgramFileBytes));
  return NgramLayout::Parse(config, json).status().WithContext(path.string());
}

Result<ScanReport> VerifyCheckpoint(const Path& dir, const GlobalOptions& global) {
  ASSIGN_OR_RETURN(ModelConfig config, ModelConfig::Load(dir));
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(dir));
  if (!checkpoint.HasDraftHead()) config.DropDraftHead();
  RETURN_IF_ERROR(checkpoint.ValidateLayout(SpecsOf(config)));
  RETURN_IF_ERROR(CheckCompanions(dir, config));
  Progress progress("checking", ProgressUnit::kBytes);
  return ScanCheckpoint(
      checkpoint,
      {.threads = global.threads > 0 ? global.threads : ReadMachineLimits().cpus,
       .on_progress = [&](int64_t done, int64_t total) { progress.Update(done, total); },
       .should_stop = Interrupted});
}

std::string ProblemText(const ScanProblem& p) {
  return fmt::format("{}: tensor '{}': found {}{}, expected {}", p.file, p.tensor, p.found,
                     p.count > 1 ? fmt::format(" and {} more", p.count - 1) : "", p.expected);
}

std::string TextOf(const ScanReport& report) {
  std::string text;
  for (const ScanProblem& problem : report.problems) text += ProblemText(problem) + "\n";
  return text + fmt::format("{} tensors in {} file(s), {} bytes checked: {}\n",
                            Grouped(report.tensors), report.files, Grouped(report.bytes),
                            report.problems.empty()
                                ? "everything as expected"
                                : fmt::format("{} bad", Grouped(std::ssize(report.problems))));
}

std::string JsonOf(const ScanReport& report) {
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  for (const ScanProblem& p : report.problems) {
    problems.push_back({{"file", p.file},
                        {"tensor", p.tensor},
                        {"found", p.found},
                        {"expected", p.expected},
                        {"count", p.count}});
  }
  const nlohmann::ordered_json json = {{"ok", report.problems.empty()},
                                       {"files", report.files},
                                       {"tensors", report.tensors},
                                       {"bytes", report.bytes},
                                       {"problems", problems}};
  return json.dump(2) + "\n";
}

Status RunVerify(const VerifyFlags& flags, const CommandContext& context) {
  ASSIGN_OR_RETURN(const Path dir, FindModelDir(context.global.model));
  Result<ScanReport> report = VerifyCheckpoint(dir, context.global);
  if (!report.ok()) {
    const nlohmann::ordered_json json = {{"ok", false}, {"error", report.status().message()}};
    if (flags.json) RETURN_IF_ERROR(context.out.Write(json.dump(2) + "\n"));
    return std::move(report).status();
  }
  RETURN_IF_ERROR(context.out.Write(flags.json ? JsonOf(*report) : TextOf(*report)));
  if (report->problems.empty()) return Status::Ok();
  return CorruptData(fmt::format("found {} bad tensor(s), the first: {}", report->problems.size(),
                                 ProblemText(report->problems.front())));
}

}  // namespace

void AddVerifyCheckpointCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App& app = registry.Add(
      {.name = "verify checkpoint",
       .summary = "read all of a checkpoint and check every value",
       .examples = {"deepinfer verify checkpoint",
                    "deepinfer verify checkpoint --model /data/DeepSeek-V4.1-Flash --json"}},
      [flags](const CommandContext& context) { return RunVerify(*flags, context); });
  app.add_flag("--json", flags->json, "print JSON");
}

}  // namespace deepinfer
