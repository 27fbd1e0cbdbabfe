// A scenario file: commands, a line of four dashes, what they must print, a blank line; again and
// again.  Lines that begin with # are comments.  The same form as in etcd's raft.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// One command line: a name, then words and key=value pairs.
struct ScenarioCommand {
  std::string line;
  std::string name;
  std::vector<std::string> words;

  // The value behind key=, or the fallback.  A key that is asked for counts as known.
  int64_t Number(std::string_view key, int64_t fallback) const;
  // The first word as a number, or the fallback.
  int64_t First(int64_t fallback = 0) const;
  bool Has(std::string_view word) const;
  // Words that nobody asked for, joined; empty when all were.
  std::string Unknown() const;

 private:
  mutable std::vector<std::string> asked_;
};

struct ScenarioBlock {
  std::vector<std::string> comment;  // and blank lines before the commands
  std::vector<ScenarioCommand> commands;
  std::string expected;  // whole lines
};

struct Scenario {
  std::vector<ScenarioBlock> blocks;
  std::vector<std::string> tail;  // comments behind the last block

  std::string Text() const;
};

Result<Scenario> ParseScenario(std::string_view text);

// The lines that differ, with - and +, and the equal ones between them.
std::string LineDiff(std::string_view expected, std::string_view found);

}  // namespace deepinfer
