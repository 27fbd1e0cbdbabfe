#include "apps/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/output.h"
#include "kernels/kernels.h"
#include "kernels/select.h"

namespace deepinfer {
namespace {

constexpr std::string_view kFooter =
    R"(Examples:
  deepinfer generate "Hello!"
  deepinfer generate --jsonl requests.jsonl --out results.jsonl
  deepinfer chat
  deepinfer inspect
  deepinfer inspect --model /data/DeepSeek-V4.1-Flash
  deepinfer COMMAND --help

Any flag can also stand in a TOML file named by --config: options of every command at the top, a
command's own under [command]. Flags win over environment variables, those over the file.
Exit status: 0 success, 1 failure, 2 wrong usage, 130 stopped by Ctrl-C.)";

// What the environment says wins over a configuration file; CLI11 would have it the other way
// round.
class ConfigBelowEnvironment : public CLI::ConfigTOML {
 public:
  explicit ConfigBelowEnvironment(const CLI::App& root) : root_(root) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> kept = CLI::ConfigTOML::from_config(input);
    std::erase_if(kept, [&](const CLI::ConfigItem& item) { return InEnvironment(item); });
    return kept;
  }

 private:
  bool InEnvironment(const CLI::ConfigItem& item) const {
    const CLI::App* app = &root_;
    for (const std::string& parent : item.parents) {
      const auto named = app->get_subcommands(
          [&](const CLI::App* command) { return command->get_name() == parent; });
      if (named.empty()) return false;
      app = named.front();
    }
    const CLI::Option* option = app->get_option_no_throw("--" + item.name);
    if (option == nullptr || option->get_envname().empty()) return false;
    const char* value = std::getenv(option->get_envname().c_str());
    return value != nullptr && *value != '\0';
  }

  const CLI::App& root_;
};

std::string VersionText() {
  std::string sets;
  for (const KernelTable* table : SupportedKernels()) {
    sets += fmt::format("{}{}", sets.empty() ? "" : ", ", table->name);
  }
  return fmt::format("deepinfer {}\nnumerics {}\ninstruction sets {}", DEEPINFER_VERSION,
                     NumericsId(Numerics::kRelease), sets);
}

void AddGlobalOptions(CLI::App& app, GlobalOptions& global) {
  app.add_option("--model", global.model, "checkpoint directory; default: the shipped nano model")
      ->envname("DEEPINFER_MODEL")
      ->type_name("DIR");
  app.add_option("--threads", global.threads, "compute threads; 0: all that this process may use")
      ->envname("DEEPINFER_THREADS")
      ->check(CLI::Range(0, 4096).description(""))
      ->type_name("N");
  app.add_option("--memory", global.memory, "memory budget, such as 64G; 0: all there is")
      ->envname("DEEPINFER_MEMORY")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("SIZE");
  app.add_option("--kv-cache-memory", global.kv_cache_memory,
                 "part of it for the KV cache, such as 4G; 0: what sequences and experts leave")
      ->envname("DEEPINFER_KV_CACHE_MEMORY")
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("SIZE");
  const std::map<std::string, Numerics> numerics = {{"release", Numerics::kRelease},
                                                    {"fp32", Numerics::kFp32}};
  AddChoice<Numerics>(app, "--numerics", global.numerics, numerics,
                      "release: as the model is meant to run; fp32: no activation is rounded")
      ->envname("DEEPINFER_NUMERICS")
      ->type_name("release|fp32");
  app.add_option("--max-model-len", global.max_model_len,
                 "longest prompt plus output in tokens; 0: what the model allows")
      ->envname("DEEPINFER_MAX_MODEL_LEN")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30).description(""))
      ->type_name("N");
  const std::map<std::string, LogLevel> levels = {{"debug", LogLevel::kDebug},
                                                  {"info", LogLevel::kInfo},
                                                  {"warning", LogLevel::kWarning},
                                                  {"error", LogLevel::kError},
                                                  {"off", LogLevel::kOff}};
  AddChoice<LogLevel>(app, "--log-level", global.log_level, levels,
                      "least severe log line that is shown")
      ->envname("DEEPINFER_LOG_LEVEL")
      ->type_name("debug|info|warning|error|off");
}

std::unique_ptr<CLI::App> MakeRoot(GlobalOptions& global) {
  auto app = std::make_unique<CLI::App>("Runs DeepSeek-V4.1-Flash on CPUs.", "deepinfer");
  app->require_subcommand(1);
  app->allow_config_extras(false);
  app->set_config("--config", "", "read flags from a TOML file")->type_name("FILE.toml");
  app->config_formatter(std::make_shared<ConfigBelowEnvironment>(*app));
  app->set_version_flag("--version", VersionText);
  app->footer(std::string(kFooter));
  AddGlobalOptions(*app, global);
  return app;
}

// A sentence on stderr, and the exit status.
int Report(std::string_view who, const Status& status) {
  fmt::print(stderr, "{}: {}\n", who, status.message());
  return ExitCodeOf(status.code());
}

// Text that was asked for, such as help.
int Print(Output& out, const std::string& text) {
  const Status status = out.WriteNow(text + "\n");
  return status.ok() ? 0 : Report("deepinfer", status);
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

int ParseFailed(const CommandRegistry& registry, const CLI::ParseError& error) {
  const std::string name = registry.ChosenName();
  const bool nameless = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
                        registry.Chosen() == nullptr;
  const std::string what = nameless ? "found no command, expected one" : FirstLine(error.what());
  fmt::print(stderr, "{}: {} (try {} --help)\n", name, what, name);
  return ExitCodeOf(ErrorCode::kInvalidArgument);
}

int RunChosen(const CommandRegistry& registry, const CommandContext& context) {
  const CommandBody* body = registry.Chosen();
  Status status = (*body)(context);
  // What was printed before a failure is still a result; its own failure matters only after it.
  Status flushed = context.out.Flush();
  if (status.ok()) status = std::move(flushed);
  return status.ok() ? 0 : Report(registry.ChosenName(), status);
}

int ParseAndRun(int argc, const char* const* argv) {
  GlobalOptions global;
  Output out(STDOUT_FILENO);
  const std::unique_ptr<CLI::App> root = MakeRoot(global);
  CommandRegistry registry(*root);
  AddAllCommands(registry);
  try {
    root->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Print(out, root->help());
  } catch (const CLI::CallForVersion& version) {
    return Print(out, version.what());
  } catch (const CLI::ParseError& error) {
    return ParseFailed(registry, error);
  }
  SetLogLevel(global.log_level);
  return RunChosen(registry, {.global = global, .out = out});
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  InstallSignalHandlers();
  try {
    return ParseAndRun(argc, argv);
  } catch (const std::exception& error) {
    // Nothing of ours throws; this is a library, or memory that ran out.
    return Report("deepinfer", Internal(error.what()));
  }
}

}  // namespace deepinfer
