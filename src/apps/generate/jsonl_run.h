// deepinfer generate --jsonl: many requests from lines of JSON, their results as lines of JSON in
// the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "apps/line_source.h"
#include "apps/open_engine.h"
#include "apps/prefill_flags.h"
#include "apps/request_builder.h"
#include "apps/request_options.h"
#include "base/status.h"
#include "deepinfer/engine.h"

namespace deepinfer {

struct JsonlOptions {
  RequestOptions flags;  // for what a line does not say
  PrefillFlags prefill;
  EngineFlags engine;
};

struct JsonlSummary {
  int64_t lines = 0;      // results written, one for each line read
  int64_t failed = 0;     // of them errors
  int64_t cancelled = 0;  // of them cut short by Ctrl-C
  bool complete = false;  // every line of the source has its result
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  double seconds = 0;
};

// Called with whole lines, in the order of the source, as soon as that allows.
using LineSink = std::function<Status(std::string_view line)>;

// A bad line becomes an error in its place; the others run.  Ctrl-C ends what has been read with
// what there is and leaves the rest of the source alone: then the summary is not complete.  An
// error only when the source cannot be read or the sink fails.
Result<JsonlSummary> RunJsonl(Engine& engine, LineSource& source, const JsonlOptions& options,
                              const LineSink& sink);

}  // namespace deepinfer
