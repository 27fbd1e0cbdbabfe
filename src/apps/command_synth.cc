#include "apps/command_synth.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/progress.h"
#include "inspect/render.h"
#include "synth/presets.h"
#include "synth/synthesize.h"

namespace deepinfer {
namespace {

struct SynthFlags {
  Preset preset = Preset::kTiny;
  PresetChanges changes;
  Path out;
  uint64_t seed = 0;
  uint64_t shard_bytes = SynthOptions().max_shard_bytes;
};

Status RunSynth(const SynthFlags& flags, const CommandContext& context) {
  ASSIGN_OR_RETURN(const ModelConfig config, ConfigOf(flags.preset, flags.changes));
  SynthReport report;
  {
    Progress progress("writing", ProgressUnit::kBytes);
    ASSIGN_OR_RETURN(
        report,
        Synthesize(config, {.dir = flags.out,
                            .seed = flags.seed,
                            .max_shard_bytes = flags.shard_bytes,
                            .on_progress = [&](int64_t done,
                                               int64_t total) { progress.Update(done, total); },
                            .should_stop = Interrupted}));
  }
  std::string text = fmt::format("{}: {} tensors, {} bytes in {} file(s)", flags.out.string(),
                                 Grouped(report.tensors), Grouped(report.bytes), report.files);
  if (report.sparse_bytes > 0) {
    text += fmt::format(", {} bytes of them left as holes", Grouped(report.sparse_bytes));
  }
  return context.out.Write(text + "\n");
}

void AddChanges(CLI::App& app, PresetChanges& changes) {
  app.add_option("--layers", changes.layers, "layers instead of the preset's")->type_name("N");
  app.add_option("--experts", changes.experts, "routed experts of a layer")->type_name("N");
  app.add_option("--draft-experts", changes.draft_experts, "experts of a draft block")
      ->type_name("N");
  app.add_option("--vocab", changes.vocab_size, "vocabulary size")->type_name("N");
  app.add_option("--context", changes.max_position_embeddings, "longest sequence in tokens")
      ->type_name("N");
  app.add_flag("--no-engram", changes.no_ngram, "no n-gram memory");
  app.add_flag("--no-draft", changes.no_draft, "no draft head");
  app.add_flag("--no-vision", changes.no_vision, "no vision encoder");
}

}  // namespace

void AddSynthCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<SynthFlags>();
  CLI::App& app = registry.Add(
      {.name = "synth",
       .summary = "write a checkpoint of seeded random weights",
       .examples = {"deepinfer synth --preset tiny --out /tmp/tiny --seed 7",
                    "deepinfer synth --preset v41-slice --out /tmp/slice --experts 16 --vocab 8192",
                    "deepinfer generate --model /tmp/tiny --max-tokens 8 hello"}},
      [flags](const CommandContext& context) { return RunSynth(*flags, context); });
  AddChoice<Preset>(
      app, "--preset", flags->preset,
      {{"tiny", Preset::kTiny}, {"nano", Preset::kNano}, {"v41-slice", Preset::kV41Slice}},
      "tiny, nano, or the released dimensions in four layers")
      ->required()
      ->type_name("tiny|nano|v41-slice");
  app.add_option("--out", flags->out, "directory to write, new or empty")
      ->required()
      ->type_name("DIR");
  AddChanges(app, flags->changes);
  app.add_option("--seed", flags->seed, "the same seed gives the same bytes everywhere")
      ->type_name("N");
  app.add_option("--shard-size", flags->shard_bytes, "largest weight file, such as 5G")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("SIZE");
}

}  // namespace deepinfer
