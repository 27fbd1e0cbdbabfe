// One line of a JSONL file of requests: {id, prompt or messages, and the parameters of
// RequestOptions by their own names}.
#pragma once

#include <string>
#include <string_view>

#include "apps/request_builder.h"
#include "apps/request_options.h"
#include "base/status.h"

namespace deepinfer {

struct JsonlRequest {
  std::string id = "null";  // JSON text of a string or an integer; null when the line has none
  PromptSource source;      // exactly one of its members
  RequestOptions options;   // a field that is missing or null is absent
};

// Fills `request` from a line.  InvalidArgument for what is not one JSON object, a field that is
// unknown, given twice or of the wrong type, and anything but one of prompt and messages; the id is
// filled even then, as long as it can be read.
Status ParseJsonlRequest(std::string_view line, JsonlRequest& request);

}  // namespace deepinfer
