// What a run cost, in one line for a person.
#pragma once

#include <string>

#include "apps/generate/jsonl_run.h"
#include "deepinfer/answer.h"
#include "deepinfer/statistics.h"
#include "engine/request.h"
#include "model/prefill.h"

namespace deepinfer {

// Tokens, speeds, prefill mode, why the answer ended, its seed, and peak memory.
std::string FiguresOf(const Answer& answer, const PrefillOptions& prefill);
std::string FiguresOf(const GenerationResult& result, const PrefillOptions& prefill);
std::string FiguresOf(const JsonlSummary& summary, const PrefillOptions& prefill);

// Lines of op, milliseconds, calls and share, most time first; empty without a profile.
std::string OpTable(const EngineStatistics& statistics);

}  // namespace deepinfer
