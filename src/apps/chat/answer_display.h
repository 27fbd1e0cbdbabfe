// Shows an answer as it comes: the text on standard output, what the model thinks dimmed on a
// terminal and between <think> and </think> elsewhere.
#pragma once

#include <string>
#include <string_view>

#include "apps/output.h"
#include "base/status.h"

namespace deepinfer {

// One answer.  Not thread-safe.
class AnswerDisplay {
 public:
  // think_end: the spelling that ends the thinking; empty for an answer without.
  AnswerDisplay(Output& out, std::string_view think_end);

  Status Show(std::string_view text);
  // Ends the line, and the dimming of a thought that was cut short.
  Status Finish();

 private:
  Status Begin();
  Status EndThinking();

  Output& out_;
  std::string think_end_;
  bool thinking_;
  bool begun_ = false;
  std::string held_;  // may still become the end of the thinking
};

}  // namespace deepinfer
