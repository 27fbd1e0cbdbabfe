// Inspection reports as text for people and as JSON for programs.
#pragma once

#include <cstdint>
#include <string>

#include "inspect/report.h"

namespace deepinfer {

// 1234567 -> "1,234,567"
std::string Grouped(int64_t value);
// 1400 -> "1.4 kB" (powers of 1000), at most four digits
std::string ShortBytes(int64_t bytes);

// Several lines, each ended.
std::string RenderText(const InspectReport& report);
std::string RenderJson(const InspectReport& report);

}  // namespace deepinfer
