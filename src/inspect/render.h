// Inspection reports as text for people and as JSON for programs.
#pragma once

#include <string>

#include "base/byte_text.h"
#include "inspect/report.h"

namespace deepinfer {

// Several lines, each ended.
std::string RenderText(const InspectReport& report);
std::string RenderJson(const InspectReport& report);

}  // namespace deepinfer
