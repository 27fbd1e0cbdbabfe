#include "apps/generate/command_generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "apps/command.h"
#include "apps/generate/figures.h"
#include "apps/generate/generate_jsonl.h"
#include "apps/generate/result_json.h"
#include "apps/interrupt.h"
#include "apps/open_engine.h"
#include "apps/prefill_flags.h"
#include "apps/progress.h"
#include "apps/request_builder.h"
#include "apps/request_options.h"
#include "deepinfer/engine.h"
#include "tokenizer/chat.h"

namespace deepinfer {
namespace {

constexpr uint64_t kMaxPromptBytes = uint64_t{1} << 30;

// How often a wait looks whether Ctrl-C was pressed.
constexpr std::chrono::milliseconds kInterruptPoll(50);

struct Flags {
  std::string prompt;
  std::string file;
  std::string messages;
  JsonlFiles jsonl;
  EngineFlags engine;
  RequestOptions options;
  PrefillFlags prefill;
  bool json = false;
};

Result<std::string> ReadStdin() {
  std::string text;
  char buffer[1 << 16];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, got);
  if (Interrupted()) return Cancelled("stopped while reading the prompt");
  if (std::ferror(stdin) != 0) return IoError("stdin: cannot read");
  return text;
}

// The prompt's text: the argument, --file, or stdin.
Result<std::string> PromptText(const Flags& flags) {
  if (!flags.prompt.empty() && !flags.file.empty()) {
    return InvalidArgument("expected one of a prompt and --file");
  }
  if (!flags.file.empty()) return ReadFile(flags.file, kMaxPromptBytes);
  if (!flags.prompt.empty() && flags.prompt != "-") return flags.prompt;
  ASSIGN_OR_RETURN(std::string text, ReadStdin());
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<PromptSource> SourceOf(const Flags& flags) {
  PromptSource source;
  if (flags.messages.empty()) {
    ASSIGN_OR_RETURN(source.text, PromptText(flags));
    return source;
  }
  if (!flags.prompt.empty() || !flags.file.empty()) {
    return InvalidArgument("--messages: expected no other prompt beside it");
  }
  ASSIGN_OR_RETURN(source.messages, ReadFile(flags.messages, kMaxPromptBytes));
  RETURN_IF_ERROR(ParseMessages(*source.messages).status().WithContext(flags.messages));
  return source;
}

// Shows the answer while it comes.  Cancelled after Ctrl-C.
Status Show(AnswerStream& stream, int64_t prompt_len, const Flags& flags, Output& out) {
  std::optional<Progress> prefill(std::in_place, "prefill", ProgressUnit::kTokens);
  while (true) {
    const std::optional<AnswerPiece> piece = stream.NextWithin(kInterruptPoll);
    if (Interrupted()) return Cancelled("stopped before the end of the answer");
    if (!piece && stream.ended()) return Status::Ok();
    if (!piece) continue;
    if (prefill) prefill->Update(piece->prompt_done, prompt_len);
    if (piece->prompt_done == prompt_len) prefill.reset();  // the bar makes room for the text
    if (!flags.json) RETURN_IF_ERROR(out.WriteNow(piece->text));
  }
}

Status RunOne(const Flags& flags, const CommandContext& context) {
  ASSIGN_OR_RETURN(Engine engine,
                   OpenEngine(context.global, flags.prefill,
                              {.max_sequences = 1, .profile = flags.engine.profile}));
  ASSIGN_OR_RETURN(PromptSource source, SourceOf(flags));
  ASSIGN_OR_RETURN(Request request, BuildRequest(engine, std::move(source), flags.options));
  const auto prompt_len = std::ssize(request.prompt);
  ASSIGN_OR_RETURN(AnswerStream stream, engine.Submit(std::move(request)));
  RETURN_IF_ERROR(Show(stream, prompt_len, flags, context.out));
  ASSIGN_OR_RETURN(const Answer answer, stream.Wait());
  RETURN_IF_ERROR(context.out.WriteNow(flags.json ? ResultJson(answer, engine) : "\n"));
  fmt::print(stderr, "{}\n{}", FiguresOf(answer, flags.prefill.Options()),
             OpTable(engine.Statistics()));
  return Status::Ok();
}

Status Run(const Flags& flags, const CommandContext& context) {
  if (flags.jsonl.in.empty()) {
    if (!flags.jsonl.out.empty()) return InvalidArgument("--out: expected --jsonl beside it");
    return RunOne(flags, context);
  }
  if (!flags.prompt.empty() || !flags.file.empty() || !flags.messages.empty()) {
    return InvalidArgument("--jsonl: expected no other prompt beside it");
  }
  return GenerateJsonl(context, flags.jsonl,
                       {.flags = flags.options, .prefill = flags.prefill, .engine = flags.engine});
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("prompt", flags.prompt, "the prompt; without it (or with -), stdin");
  app.add_option("--file", flags.file, "read the prompt from a file");
  app.add_option("--messages", flags.messages, "JSON list of chat messages instead of a prompt");
  app.add_option("--jsonl", flags.jsonl.in,
                 "many requests: lines of {id, prompt or messages, parameters by the flags' names "
                 "with _}; - for stdin")
      ->type_name("FILE");
  app.add_option("--out", flags.jsonl.out, "where the results of --jsonl go; - for stdout")
      ->type_name("FILE");
  app.add_flag("--json", flags.json, "the result as one JSON object");
  app.add_flag_callback(
      "--raw", [&flags] { flags.options.raw = true; },
      "no chat template: the text goes on as it is");
  app.add_option("--logprobs", flags.options.logprobs,
                 "with --json or --jsonl: logprobs of each token and of this many best ones");
  app.add_option("--max-num-seqs", flags.engine.max_sequences, "with --jsonl: requests in flight")
      ->check(CLI::Range(int64_t{1}, int64_t{2048}).description(""))
      ->capture_default_str();
  app.add_option("--max-num-batched-tokens", flags.engine.max_batch_tokens,
                 "with --jsonl: most tokens of one step (0: the engine's choice)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--step-time-budget-ms", flags.engine.step_time_budget_ms,
                 "with --jsonl: how long a step may take, for which prompts are cut (0: any time)")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--profile", flags.engine.profile,
               "say on stderr how much time each kind of operation took");
  flags.options.AddFlags(app);
  flags.prefill.AddTo(app);
}

}  // namespace

void AddGenerateCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<Flags>();
  CLI::App& app = registry.Add(
      {.name = "generate",
       .summary = "answers a prompt, a conversation or a file of them",
       .examples = {"deepinfer generate \"Hello!\"",
                    "deepinfer generate --raw \"It is a truth\" --max-tokens 40 --seed 7",
                    "deepinfer generate --messages chat.json --thinking --effort high",
                    "cat question.txt | deepinfer generate --temperature 0 --json",
                    "deepinfer generate --jsonl requests.jsonl --out results.jsonl"}},
      [flags](const CommandContext& context) { return Run(*flags, context); });
  AddFlags(app, *flags);
}

}  // namespace deepinfer
