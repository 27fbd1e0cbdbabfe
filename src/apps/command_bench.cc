#include "apps/command_bench.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/load_model.h"
#include "apps/prefill_flags.h"
#include "base/machine.h"
#include "bench/kernel_bench.h"
#include "bench/model_bench.h"
#include "bench/render.h"
#include "io/file.h"
#include "kernels/select.h"

namespace deepinfer {
namespace {

struct MachineFlags {
  bool json = false;
  bool no_disk = false;
  std::string disk_dir;
};

struct KernelFlags {
  bool json = false;
  std::string svg;
  KernelBenchOptions options;
};

struct ModelFlags {
  bool json = false;
  std::vector<int64_t> prompt_lens{128, 512, 2048};
  std::vector<int64_t> contexts{128, 1024};
  std::vector<int64_t> sequences{1, 4};
  PrefillFlags prefill;
};

Result<std::unique_ptr<ExecContext>> MakeContext(const GlobalOptions& global) {
  ASSIGN_OR_RETURN(const KernelTable* kernels, SelectKernels(ForcedIsa()));
  const int threads = global.threads > 0 ? global.threads : ReadMachineLimits().cpus;
  return std::make_unique<ExecContext>(*kernels, threads);
}

Status RunMachine(const MachineFlags& flags, const CommandContext& command) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ExecContext> context, MakeContext(command.global));
  const Roofline roofline = MeasureRoofline(*context);
  if (!flags.json) RETURN_IF_ERROR(command.out.WriteNow(RooflineText(roofline)));
  std::vector<DiskRate> disk;
  if (!flags.no_disk) {
    const Path dir = flags.disk_dir.empty() ? Path(".") : Path(flags.disk_dir);
    ASSIGN_OR_RETURN(disk, MeasureDisk(dir));
  }
  if (flags.json) return command.out.Write(MachineJson(roofline, disk));
  return disk.empty() ? Status::Ok() : command.out.Write(DiskText(disk));
}

Status RunKernels(const KernelFlags& flags, const CommandContext& command) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ExecContext> context, MakeContext(command.global));
  const Roofline roofline = MeasureRoofline(*context);
  Status written;
  const auto show = [&](const std::string& text) {
    if (!flags.json && written.ok()) written = command.out.WriteNow(text);
  };
  show(RooflineText(roofline));
  show(KernelTableHeader());
  const std::vector<BenchResult> results =
      BenchKernels(*context, roofline, flags.options,
                   [&](const BenchResult& result) { show(KernelTableLine(result)); });
  if (const auto schedule = ComputeDecodeSchedule(results)) show(DecodeScheduleLine(*schedule));
  RETURN_IF_ERROR(std::move(written));
  if (!flags.svg.empty()) {
    ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(flags.svg));
    RETURN_IF_ERROR(file.Write(RooflineSvg(roofline, results)));
    RETURN_IF_ERROR(file.Commit());
  }
  return flags.json ? command.out.Write(KernelsJson(roofline, results)) : Status::Ok();
}

Status RunModel(const ModelFlags& flags, const CommandContext& command) {
  ModelBenchOptions options{.prompt_lens = flags.prompt_lens,
                            .contexts = flags.contexts,
                            .sequences = flags.sequences,
                            .prefill = flags.prefill.Options()};
  int64_t sequences = 1;
  for (const int64_t count : options.sequences) sequences = std::max(sequences, count);
  ASSIGN_OR_RETURN(const std::unique_ptr<ModelInstance> model,
                   LoadModel(command.global, sequences));
  const Roofline roofline = MeasureRoofline(model->context());
  Status written;
  const auto show = [&](const std::string& text) {
    if (!flags.json && written.ok()) written = command.out.WriteNow(text);
  };
  show(RooflineText(roofline));
  show(StepTableHeader());
  std::vector<StepResult> results;
  RETURN_IF_ERROR(BenchModel(*model, roofline, options, [&](const StepResult& result) {
    show(StepTableLines(result));
    results.push_back(result);
  }));
  RETURN_IF_ERROR(std::move(written));
  return flags.json ? command.out.Write(StepsJson(roofline, results)) : Status::Ok();
}

void AddMachine(CommandRegistry& registry) {
  auto flags = std::make_shared<MachineFlags>();
  CLI::App& app = registry.Add(
      {.name = "bench machine",
       .summary = "the limits of this machine: memory, caches, dot products, disk",
       .examples = {"deepinfer bench machine", "deepinfer bench machine --disk-dir /data --json"}},
      [flags](const CommandContext& context) { return RunMachine(*flags, context); });
  app.add_flag("--json", flags->json, "print JSON");
  app.add_flag("--no-disk", flags->no_disk, "leave out the disk");
  app.add_option("--disk-dir", flags->disk_dir,
                 "where a file of 1 GiB may be written for a moment (default: here)");
}

void AddKernels(CommandRegistry& registry) {
  auto flags = std::make_shared<KernelFlags>();
  CLI::App& app = registry.Add(
      {.name = "bench kernels",
       .summary = "every op at the released dimensions, against the machine's limits",
       .examples = {"deepinfer bench kernels", "deepinfer bench kernels --only ffn --rows 1,64,512",
                    "deepinfer bench kernels --json --svg roofline.svg"}},
      [flags](const CommandContext& context) { return RunKernels(*flags, context); });
  app.add_flag("--json", flags->json, "print JSON");
  app.add_option("--svg", flags->svg, "write a roofline plot to this file");
  app.add_option("--only", flags->options.filter, "only ops whose names contain this");
  app.add_option("--rows", flags->options.rows, "rows to measure with")
      ->delimiter(',')
      ->check(CLI::Range(1, 2048));
  app.add_option("--seconds", flags->options.seconds, "time of each measurement")
      ->check(CLI::Range(0.01, 60.0));
}

void AddModel(CommandRegistry& registry) {
  auto flags = std::make_shared<ModelFlags>();
  CLI::App& app = registry.Add(
      {.name = "bench model",
       .summary = "prefill and decode steps of a checkpoint, with the share of each op",
       .examples = {"deepinfer bench model",
                    "deepinfer bench model --model /data/v41-slice "
                    "--prompt-lens 512,2048 --contexts 1024"}},
      [flags](const CommandContext& context) { return RunModel(*flags, context); });
  app.add_flag("--json", flags->json, "print JSON");
  app.add_option("--prompt-lens", flags->prompt_lens, "prompt lengths of prefill")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--contexts", flags->contexts, "tokens before the decode steps")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--sequences", flags->sequences, "sequences that decode together")
      ->delimiter(',')
      ->check(CLI::Range(1, 2048));
  flags->prefill.AddTo(app);
}

}  // namespace

void AddBenchCommands(CommandRegistry& registry) {
  AddMachine(registry);
  AddKernels(registry);
  AddModel(registry);
}

}  // namespace deepinfer
