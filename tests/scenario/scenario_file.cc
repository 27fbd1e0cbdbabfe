#include "tests/scenario/scenario_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

namespace deepinfer {
namespace {

constexpr std::string_view kDashes = "----";

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

ScenarioCommand ParseCommand(const std::string& line) {
  ScenarioCommand command;
  command.line = line;
  std::istringstream stream(line);
  stream >> command.name;
  for (std::string word; stream >> word;) command.words.push_back(word);
  return command;
}

// The number that is the whole text.
std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

bool IsComment(const std::string& line) { return line.empty() || line.starts_with('#'); }

}  // namespace

int64_t ScenarioCommand::Number(std::string_view key, int64_t fallback) const {
  for (const std::string& word : words) {
    if (!word.starts_with(key) || word.substr(key.size(), 1) != "=") continue;
    const auto value = ParseNumber(std::string_view(word).substr(key.size() + 1));
    if (!value) continue;
    asked_.push_back(word);
    return *value;
  }
  return fallback;
}

int64_t ScenarioCommand::First(int64_t fallback) const {
  const auto value = words.empty() ? std::nullopt : ParseNumber(words.front());
  if (!value) return fallback;
  asked_.push_back(words.front());
  return *value;
}

bool ScenarioCommand::Has(std::string_view wanted) const {
  const auto found = std::find(words.begin(), words.end(), wanted);
  if (found != words.end()) asked_.push_back(*found);
  return found != words.end();
}

std::string ScenarioCommand::Unknown() const {
  std::vector<std::string> unknown;
  for (const std::string& word : words) {
    const bool known = std::find(asked_.begin(), asked_.end(), word) != asked_.end();
    if (!known) unknown.push_back(word);
  }
  return fmt::format("{}", fmt::join(unknown, " "));
}

Result<Scenario> ParseScenario(std::string_view text) {
  const std::vector<std::string> lines = Split(text, '\n');
  Scenario scenario;
  ScenarioBlock block;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (block.commands.empty() && IsComment(lines[i])) {
      block.comment.push_back(lines[i]);
    } else if (lines[i] != kDashes) {
      if (IsComment(lines[i])) {
        return CorruptData(
            fmt::format("line {}: found '{}', expected a command or {}", i + 1, lines[i], kDashes));
      }
      block.commands.push_back(ParseCommand(lines[i]));
    } else {
      while (i + 1 < lines.size() && !lines[i + 1].empty()) block.expected += lines[++i] + '\n';
      ++i;  // the blank line
      scenario.blocks.push_back(std::move(block));
      block = {};
    }
  }
  if (!block.commands.empty()) {
    return CorruptData(fmt::format("found '{}' as the last command, expected {} behind it",
                                   block.commands.back().line, kDashes));
  }
  scenario.tail = std::move(block.comment);
  return scenario;
}

std::string Scenario::Text() const {
  std::string text;
  for (const ScenarioBlock& block : blocks) {
    for (const std::string& line : block.comment) text += line + '\n';
    for (const ScenarioCommand& command : block.commands) text += command.line + '\n';
    text += fmt::format("{}\n{}", kDashes, block.expected);
    if (&block != &blocks.back() || !tail.empty()) text += '\n';
  }
  for (const std::string& line : tail) text += line + '\n';
  return text;
}

std::string LineDiff(std::string_view expected, std::string_view found) {
  const std::vector<std::string> a = Split(expected, '\n');
  const std::vector<std::string> b = Split(found, '\n');
  // common[i][j]: lines of the longest common subsequence of a[i..] and b[j..].
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string diff;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      diff += "  " + a[i++] + '\n';
      ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      diff += "- " + a[i++] + '\n';
    } else {
      diff += "+ " + b[j++] + '\n';
    }
  }
  return diff;
}

}  // namespace deepinfer
