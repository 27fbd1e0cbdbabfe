// The strict reading of a finished answer (prompt_format.md section 5): what the published parser
// accepts, and nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/chat.h"

namespace deepinfer {

struct Completion {
  std::string content;
  std::string reasoning_content;
  std::vector<ToolCall> tool_calls;  // without ids
};

// text: everything the model wrote, from behind the assistant header to the end-of-sentence token
// inclusive.  InvalidArgument names the byte offset, what was found and what was expected.
Result<Completion> ParseCompletion(std::string_view text, ThinkingMode mode);

}  // namespace deepinfer
