#include "apps/command_bench_engine.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "apps/command.h"
#include "apps/open_engine.h"
#include "apps/prefill_flags.h"
#include "apps/progress.h"
#include "bench/engine_bench.h"
#include "io/file.h"

namespace deepinfer {
namespace {

constexpr uint64_t kMaxLoadBytes = uint64_t{1} << 20;

struct Flags {
  std::string load = "chat";
  std::string load_file;
  std::optional<int64_t> requests;
  std::optional<double> rate;
  EngineFlags engine;
  PrefillFlags prefill;
  bool json = false;
  std::string svg;
};

Result<EngineLoad> LoadOf(const Flags& flags) {
  EngineLoad load = EngineLoadNamed(flags.load);
  if (!flags.load_file.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.load_file, kMaxLoadBytes));
    Result<EngineLoad> parsed = ParseEngineLoad(text);
    if (!parsed.ok()) return std::move(parsed).status().WithContext(flags.load_file);
    load = *std::move(parsed);
  }
  load.requests = flags.requests.value_or(load.requests);
  load.rate = flags.rate.value_or(load.rate);
  return load;
}

Status Run(const Flags& flags, const CommandContext& context) {
  ASSIGN_OR_RETURN(const EngineLoad load, LoadOf(flags));
  ASSIGN_OR_RETURN(Engine engine, OpenEngine(context.global, flags.prefill, flags.engine));
  std::optional<Progress> progress(std::in_place, "requests", ProgressUnit::kTokens);
  ASSIGN_OR_RETURN(const EngineBenchResult result,
                   BenchEngine(engine, load, [&](int64_t done, int64_t total) {
                     progress->Update(done, total);
                   }));
  progress.reset();
  if (!flags.svg.empty()) {
    ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(flags.svg));
    RETURN_IF_ERROR(file.Write(StepSizeSvg(result)));
    RETURN_IF_ERROR(file.Commit());
  }
  return context.out.Write(flags.json ? EngineBenchJson(result) : EngineBenchText(result));
}

}  // namespace

void AddBenchEngineCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<Flags>();
  CLI::App& app = registry.Add(
      {.name = "bench engine",
       .summary = "many requests at a time: throughput, latency, idle share, steps by size",
       .examples = {"deepinfer bench engine --load batch --max-num-seqs 64",
                    "deepinfer bench engine --load chat --rate 4 --requests 100 --json",
                    "deepinfer bench engine --load-file load.json --svg steps.svg"}},
      [flags](const CommandContext& context) { return Run(*flags, context); });
  app.add_option("--load", flags->load, "what arrives: chat, agent or batch")
      ->check(CLI::IsMember(EngineLoadNames()).description(""))
      ->capture_default_str();
  app.add_option("--load-file", flags->load_file,
                 "a JSON object instead: requests, rate, in_flight, prompt and output {min, max, "
                 "median, spread}, shared_share, shared_len, temperature, seed")
      ->type_name("FILE");
  app.add_option("--requests", flags->requests, "so many instead of the load's")
      ->check(CLI::PositiveNumber);
  app.add_option("--rate", flags->rate, "arrivals a second instead of the load's (0: all at once)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-num-seqs", flags->engine.max_sequences, "requests in flight")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--max-num-batched-tokens", flags->engine.max_batch_tokens,
                 "most tokens of one step (0: the engine's choice)")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--json", flags->json, "print JSON");
  app.add_option("--svg", flags->svg, "write a plot of step time and throughput to this file");
  flags->prefill.AddTo(app);
}

}  // namespace deepinfer
