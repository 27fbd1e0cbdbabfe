// Lines from a person or a script: edited and with a history on a terminal, plain elsewhere.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace deepinfer {

struct TypedLine {
  enum class Kind { kLine, kInterrupted, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // kLine: without its end
};

// Reads standard input.  Prompts and echo go to stderr: stdout belongs to results.  One at a time,
// not thread-safe.
class LineReader {
 public:
  virtual ~LineReader() = default;

  // kInterrupted: Ctrl-C; what was typed is gone.  kEnd: Ctrl-D, the end of the script, or SIGTERM.
  // initial: text that a terminal shows for editing.
  virtual Result<TypedLine> Read(const std::string& prompt, const std::string& initial) = 0;
  Result<TypedLine> Read(const std::string& prompt) { return Read(prompt, ""); }
  // Lets the arrow keys find a line again.
  virtual void Remember(const std::string& /*text*/) {}
  virtual bool IsTerminal() const = 0;
};

// For a terminal when standard input and stderr are one.
Result<std::unique_ptr<LineReader>> OpenLineReader();

}  // namespace deepinfer
