#include "apps/command_generate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/load_model.h"
#include "apps/prefill_flags.h"
#include "apps/sampling_flags.h"
#include "engine/generation_defaults.h"
#include "engine/generator.h"
#include "tokenizer/chat.h"

namespace deepinfer {
namespace {

constexpr uint64_t kMaxPromptBytes = uint64_t{1} << 30;

struct Flags {
  std::string prompt;
  std::string file;
  std::string messages;
  std::string system;
  std::string effort;
  std::vector<std::string> stop;
  SamplingFlags sampling;
  PrefillFlags prefill;
  int64_t max_tokens = 0;
  int64_t chunk = 0;
  int num_logprobs = -1;
  bool raw = false;
  bool thinking = false;
  bool json = false;
};

Result<std::string> ReadStdin() {
  std::string text;
  char buffer[1 << 16];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, got);
  if (std::ferror(stdin) != 0) return IoError("stdin: cannot read");
  return text;
}

// The prompt's text: the argument, --file, or stdin.
Result<std::string> PromptText(const Flags& flags) {
  if (!flags.prompt.empty() && !flags.file.empty()) {
    return InvalidArgument("expected one of a prompt and --file");
  }
  std::string text = flags.prompt;
  if (!flags.file.empty()) {
    ASSIGN_OR_RETURN(text, ReadFile(flags.file, kMaxPromptBytes));
  } else if (text.empty() || text == "-") {
    ASSIGN_OR_RETURN(text, ReadStdin());
    if (text.ends_with('\n')) text.pop_back();
  }
  if (text.empty()) return InvalidArgument("prompt: found an empty text, expected some");
  return text;
}

Result<std::vector<Message>> MessagesOf(const Flags& flags) {
  if (!flags.messages.empty()) {
    if (!flags.prompt.empty() || !flags.file.empty() || !flags.system.empty()) {
      return InvalidArgument("--messages: expected no other prompt beside it");
    }
    ASSIGN_OR_RETURN(const std::string json, ReadFile(flags.messages, kMaxPromptBytes));
    Result<std::vector<Message>> messages = ParseMessages(json);
    if (!messages.ok()) return std::move(messages).status().WithContext(flags.messages);
    return messages;
  }
  std::vector<Message> messages;
  if (!flags.system.empty()) messages.push_back(Message::Text(Role::kSystem, flags.system));
  ASSIGN_OR_RETURN(std::string text, PromptText(flags));
  messages.push_back(Message::Text(Role::kUser, std::move(text)));
  return messages;
}

Result<ChatOptions> ChatOptionsOf(const Flags& flags) {
  const EffortNames names = EffortNames::Newer();
  ChatOptions options{.mode = flags.thinking ? ThinkingMode::kThinking : ThinkingMode::kChat,
                      .reasoning_effort = names.default_value};
  if (flags.effort.empty()) return options;
  if (!flags.thinking) return InvalidArgument("--effort: expected --thinking beside it");
  ASSIGN_OR_RETURN(options.reasoning_effort, ResolveEffort(flags.effort, names));
  return options;
}

// Raw text gets nothing but the beginning-of-sentence token, if it does not spell one itself.
Result<std::vector<int32_t>> RawTokens(const Flags& flags, const ModelInstance& model) {
  ASSIGN_OR_RETURN(const std::string text, PromptText(flags));
  ASSIGN_OR_RETURN(std::vector<int32_t> tokens, model.tokenizer()->Encode(text));
  const int32_t bos = model.config().bos_token;
  if (tokens.empty() || tokens.front() != bos) tokens.insert(tokens.begin(), bos);
  return tokens;
}

Result<std::vector<int32_t>> PromptTokens(const Flags& flags, const ModelInstance& model) {
  if (flags.raw) {
    if (!flags.messages.empty() || !flags.system.empty() || flags.thinking) {
      return InvalidArgument("--raw: expected no --messages, --system or --thinking beside it");
    }
    return RawTokens(flags, model);
  }
  ASSIGN_OR_RETURN(const std::vector<Message> messages, MessagesOf(flags));
  ASSIGN_OR_RETURN(const ChatOptions options, ChatOptionsOf(flags));
  ASSIGN_OR_RETURN(const RenderedPrompt prompt, RenderChat(messages, options));
  if (!prompt.images.empty()) {
    return Unsupported(
        fmt::format("messages: found {} images, expected text only", prompt.images.size()));
  }
  return model.tokenizer()->EncodeSegments(prompt.segments);
}

std::string_view FinishName(FinishReason reason) {
  return reason == FinishReason::kStop ? "stop" : "length";
}

nlohmann::ordered_json TokenJson(const Tokenizer& tokenizer, int32_t token, float logprob) {
  return {{"id", token}, {"text", tokenizer.Decode({&token, 1})}, {"logprob", logprob}};
}

std::string JsonReport(const GenerationResult& result, const Tokenizer& tokenizer,
                       bool with_logprobs) {
  nlohmann::ordered_json ids = nlohmann::ordered_json::array();
  nlohmann::ordered_json logprobs = nlohmann::ordered_json::array();
  for (const SampledToken& token : result.tokens) {
    ids.push_back(token.token);
    if (!with_logprobs) continue;
    nlohmann::ordered_json entry = TokenJson(tokenizer, token.token, token.logprob);
    entry["top"] = nlohmann::ordered_json::array();
    for (const TokenLogprob& top : token.top_logprobs) {
      entry["top"].push_back(TokenJson(tokenizer, top.token, top.logprob));
    }
    logprobs.push_back(std::move(entry));
  }
  nlohmann::ordered_json report = {
      {"text", result.text},
      {"tokens", std::move(ids)},
      {"finish_reason", FinishName(result.finish_reason)},
      {"usage",
       {{"prompt_tokens", result.prompt_len}, {"completion_tokens", result.tokens.size()}}},
      {"seed", result.seed}};
  if (with_logprobs) report["logprobs"] = std::move(logprobs);
  return report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

double PerSecond(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// The line of figures on stderr.
void ReportFigures(const GenerationResult& result) {
  const auto output_len = static_cast<int64_t>(result.tokens.size());
  // The first token comes out of the prefill; the others took a step each.
  fmt::print(
      stderr,
      "[prompt {} tokens, {:.2f} s, {:.1f} tok/s | output {} tokens, {:.2f} s, {:.1f} tok/s | "
      "{} | seed {}]\n",
      result.prompt_len, result.prefill_seconds,
      PerSecond(result.prompt_len, result.prefill_seconds), output_len, result.decode_seconds,
      PerSecond(output_len - 1, result.decode_seconds), FinishName(result.finish_reason),
      result.seed);
}

Status Run(const Flags& flags, const CommandContext& context) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ModelInstance> model,
                   LoadModelWithTokenizer(context.global));
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, PromptTokens(flags, *model));
  ASSIGN_OR_RETURN(const SamplingParams defaults, LoadGenerationDefaults(model->dir()));
  ASSIGN_OR_RETURN(SamplingParams sampling, flags.sampling.Over(defaults));
  sampling.num_logprobs = flags.num_logprobs;
  const GenerationRequest request{.prompt = TextRows(tokens),
                                  .sampling = std::move(sampling),
                                  .stop = flags.stop,
                                  .max_tokens = flags.max_tokens,
                                  .prefill = flags.prefill.Options(),
                                  .chunk = flags.chunk};
  const InterruptScope interrupt(model->context());
  const OnText stream = [&](std::string_view text) {
    return flags.json ? Status::Ok() : context.out.WriteNow(text);
  };
  ASSIGN_OR_RETURN(const GenerationResult result, Generate(*model, request, stream));
  RETURN_IF_ERROR(context.out.WriteNow(
      flags.json ? JsonReport(result, *model->tokenizer(), flags.num_logprobs >= 0) : "\n"));
  ReportFigures(result);
  return Status::Ok();
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("prompt", flags.prompt, "the prompt; without it (or with -), stdin");
  app.add_option("--file", flags.file, "read the prompt from a file");
  app.add_flag("--raw", flags.raw, "no chat template: the text goes on as it is");
  app.add_option("--messages", flags.messages, "JSON list of chat messages instead of a prompt");
  app.add_option("--system", flags.system, "system text before the prompt");
  app.add_flag("--thinking", flags.thinking, "let the model reason before it answers");
  app.add_option("--effort", flags.effort, "reasoning effort: 1-100, low, high, xhigh or max");
  app.add_option("--max-tokens", flags.max_tokens, "most tokens of output (0: the context's room)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--stop", flags.stop, "end the output before this text; may be repeated");
  app.add_option("--logprobs", flags.num_logprobs,
                 "with --json: logprobs of each token and of this many best ones");
  app.add_option("--chunk", flags.chunk, "largest prefill chunk (0: the engine's choice)")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--json", flags.json, "the result as one JSON object");
  flags.sampling.AddTo(app);
  flags.prefill.AddTo(app);
}

}  // namespace

void AddGenerateCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<Flags>();
  CLI::App& app = registry.Add(
      {.name = "generate",
       .summary = "one prompt in, its continuation out",
       .examples = {"deepinfer generate \"Hello!\"",
                    "deepinfer generate --raw \"It is a truth\" --max-tokens 40 --seed 7",
                    "deepinfer generate --messages chat.json --thinking --effort high",
                    "cat question.txt | deepinfer generate --temperature 0 --json"}},
      [flags](const CommandContext& context) { return Run(*flags, context); });
  AddFlags(app, *flags);
}

}  // namespace deepinfer
