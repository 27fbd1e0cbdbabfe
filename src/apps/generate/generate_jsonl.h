// The --jsonl side of deepinfer generate: from a file of requests to a file of results.
#pragma once

#include <string>

#include "apps/command.h"
#include "apps/generate/jsonl_run.h"
#include "base/status.h"

namespace deepinfer {

struct JsonlFiles {
  std::string in;   // "-": stdin
  std::string out;  // "-" or empty: stdout
};

// Results go to "<out>.tmp" as they come, and the file gets its name when it is complete; what
// there is after Ctrl-C becomes "<out>.partial".  Cancelled after Ctrl-C, CorruptData when a line
// failed.
Status GenerateJsonl(const CommandContext& context, const JsonlFiles& files,
                     const JsonlOptions& options);

}  // namespace deepinfer
