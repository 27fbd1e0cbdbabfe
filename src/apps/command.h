// How a command joins the command line.
//
// To add one, write command_x.{h,cc} beside the others:
//
//   // command_x.h
//   void AddXCommand(CommandRegistry& registry);
//
//   // command_x.cc (the only place that includes CLI11)
//   void AddXCommand(CommandRegistry& registry) {
//     auto flags = std::make_shared<XFlags>();
//     CLI::App& app = registry.Add(
//         {.name = "x", .summary = "does x", .examples = {"deepinfer x --n 3"}},
//         [flags](const CommandContext& context) { return RunX(*flags, context); });
//     app.add_option("--n", flags->n, "how many")->check(CLI::Range(1, 9));
//   }
//
// and add AddXCommand to the table in all_commands.cc.  A name of two words ("verify golden")
// becomes a sub-command of a group.  Options that every command takes live in GlobalOptions and are
// accepted before and after the command's name.  A flag that may also come from the environment
// gets
// ->envname("DEEPINFER_..."); --config FILE.toml sets any flag under a [x] section, global ones
// above all sections.  Flags win over the environment, which wins over the file.
//
// The command returns Ok for exit status 0, or an error: its message is the one sentence on stderr,
// its code gives the exit status (2 for InvalidArgument, 130 for Cancelled, else 1).
// Results go to context.out, everything else to stderr.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/output.h"
#include "base/log.h"
#include "base/status.h"
#include "io/file.h"
#include "model/numerics.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace deepinfer {

struct GlobalOptions {
  Path model;                    // as given; FindModelDir() turns it into a directory
  int threads = 0;               // 0: as many as the process may use
  uint64_t memory = 0;           // budget in bytes; 0: what the process may use
  uint64_t kv_cache_memory = 0;  // bytes of KV blocks; 0: the memory plan's choice
  Numerics numerics = Numerics::kRelease;
  int64_t max_model_len = 0;  // 0: what the model allows
  LogLevel log_level = LogLevel::kInfo;
};

struct CommandContext {
  const GlobalOptions& global;
  Output& out;
};

using CommandBody = std::function<Status(const CommandContext&)>;

struct CommandInfo {
  std::string_view name;     // "inspect", or "verify checkpoint"
  std::string_view summary;  // one line of the list of commands
  std::vector<std::string_view> examples;
};

// Collects commands under a root application, which must outlive it.
class CommandRegistry {
 public:
  explicit CommandRegistry(CLI::App& root) : root_(root) {}
  CommandRegistry(const CommandRegistry&) = delete;
  CommandRegistry& operator=(const CommandRegistry&) = delete;

  // Returns the command's parser, to add its options to.
  CLI::App& Add(const CommandInfo& info, CommandBody body);

  // After a parse: the body of the command that was named; null for none.
  const CommandBody* Chosen() const;
  // "deepinfer verify checkpoint": as far as the words on the command line led.
  std::string ChosenName() const;

 private:
  // The parser of a group such as "verify", made when its first command is added.
  CLI::App& GroupNamed(const std::string& name);

  CLI::App& root_;
  std::map<std::string, CLI::App*> groups_;
  std::map<const CLI::App*, CommandBody> bodies_;
};

// An option whose values have names; `choose` gets one of them.
CLI::Option* AddNamedChoice(CLI::App& app, const std::string& flag,
                            const std::vector<std::string>& names,
                            std::function<void(const std::string&)> choose,
                            const std::string& help);
// The same for a target that takes the value behind the name.
template <typename T>
CLI::Option* AddChoice(CLI::App& app, const std::string& flag, T& target,
                       const std::map<std::string, T>& choices, const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  return AddNamedChoice(
      app, flag, names, [&target, choices](const std::string& name) { target = choices.at(name); },
      help);
}

// all_commands.cc: every command of this program.
void AddAllCommands(CommandRegistry& registry);

}  // namespace deepinfer
