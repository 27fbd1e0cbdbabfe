// The results of a command on standard output.  A full disk or a closed pipe is an error like any
// other: the command ends with a sentence on stderr and a non-zero exit status.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

// Buffered writer of a file descriptor, which it does not own.  After the first failure nothing
// more is written and every call repeats the error.  Not thread-safe.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Status Write(std::string_view text);
  // Write, then Flush: for text that a reader waits for.
  Status WriteNow(std::string_view text);
  // Hands everything to the operating system; the frame calls it when a command has ended.
  Status Flush();

  // Whether a person may be watching.
  bool IsTerminal() const;

 private:
  int fd_;
  std::string buffer_;
  Status failed_;
};

}  // namespace deepinfer
