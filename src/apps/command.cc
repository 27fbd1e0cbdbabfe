#include "apps/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/check.h"

namespace deepinfer {
namespace {

std::string Examples(const std::vector<std::string_view>& examples) {
  std::string text = "Examples:";
  for (const std::string_view example : examples) text += fmt::format("\n  {}", example);
  return text + "\n\nOptions of every command: deepinfer --help";
}

// The innermost sub-command that was named.
const CLI::App& Innermost(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

}  // namespace

CLI::Option* AddNamedChoice(CLI::App& app, const std::string& flag,
                            const std::vector<std::string>& names,
                            std::function<void(const std::string&)> choose,
                            const std::string& help) {
  return app.add_option_function<std::string>(flag, std::move(choose), help)
      ->check(CLI::IsMember(names).description(""));
}

CLI::App& CommandRegistry::GroupNamed(const std::string& name) {
  CLI::App*& group = groups_[name];
  if (group != nullptr) return *group;
  group = root_.add_subcommand(name, fmt::format("{} something; see its --help", name));
  group->require_subcommand(1);
  group->fallthrough();
  group->footer("Options of every command: deepinfer --help");
  return *group;
}

CLI::App& CommandRegistry::Add(const CommandInfo& info, CommandBody body) {
  const size_t space = info.name.find(' ');
  const bool grouped = space != std::string_view::npos;
  CLI::App& parent = grouped ? GroupNamed(std::string(info.name.substr(0, space))) : root_;
  const std::string_view name = grouped ? info.name.substr(space + 1) : info.name;
  CLI::App& app = *parent.add_subcommand(std::string(name), std::string(info.summary));
  app.fallthrough();
  app.footer(Examples(info.examples));
  CHECK(bodies_.emplace(&app, std::move(body)).second);
  return app;
}

const CommandBody* CommandRegistry::Chosen() const {
  const auto found = bodies_.find(&Innermost(root_));
  return found == bodies_.end() ? nullptr : &found->second;
}

std::string CommandRegistry::ChosenName() const {
  std::string name = root_.get_name();
  for (const CLI::App* app = &root_; !app->get_subcommands().empty();) {
    app = app->get_subcommands().front();
    name += " " + app->get_name();
  }
  return name;
}

}  // namespace deepinfer
