// Results as lines of JSON, the same for `generate --json` and for JSONL.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "deepinfer/engine.h"

namespace deepinfer {

// {id, text, tokens, finish_reason, stop, usage, seed, logprobs} and a line feed.  id: JSON text of
// the request's id, left out when empty; stop and logprobs only when there are any.
std::string ResultJson(const Answer& answer, const Engine& engine, std::string_view id = "");

// {id, line, error: {code, message}} and a line feed.
std::string ErrorJson(const Status& status, std::string_view id, int64_t line);

}  // namespace deepinfer
