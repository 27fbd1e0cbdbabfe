#include "apps/chat/command_chat.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/chat/chat_loop.h"
#include "apps/chat/chat_session.h"
#include "apps/chat/line_reader.h"
#include "apps/command.h"
#include "apps/load_model.h"
#include "apps/prefill_flags.h"
#include "apps/request_options.h"
#include "engine/generation_defaults.h"

namespace deepinfer {
namespace {

struct Flags {
  RequestOptions options;
  PrefillFlags prefill;
  std::string messages;
};

Status Run(const Flags& flags, const CommandContext& context) {
  RETURN_IF_ERROR(ChatOptionsOf(flags.options).status());
  ASSIGN_OR_RETURN(const std::unique_ptr<ModelInstance> model,
                   LoadModelWithTokenizer(context.global));
  ASSIGN_OR_RETURN(const SamplingParams recommended, LoadGenerationDefaults(model->dir()));
  ChatSession session(*model, flags.options,
                      {.recommended = recommended,
                       .prefill = flags.prefill.Options(),
                       .chunk = flags.prefill.chunk});
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> reader, OpenLineReader());
  ChatLoop loop(*model, session, *reader, context.out);
  if (!flags.messages.empty()) RETURN_IF_ERROR(loop.Load(flags.messages));
  return loop.Run();
}

}  // namespace

void AddChatCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<Flags>();
  CLI::App& app = registry.Add(
      {.name = "chat",
       .summary = "a conversation in the terminal",
       .examples = {"deepinfer chat", "deepinfer chat --thinking --effort high",
                    "deepinfer chat --messages saved.json",
                    "printf 'Hello!\\nWho are you?\\n' | deepinfer chat --temperature 0"}},
      [flags](const CommandContext& context) { return Run(*flags, context); });
  app.add_option("--messages", flags->messages, "goes on with a saved conversation")
      ->type_name("FILE");
  flags->options.AddFlags(app);
  flags->prefill.AddTo(app);
}

}  // namespace deepinfer
