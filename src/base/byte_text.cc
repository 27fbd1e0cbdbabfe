#include "base/byte_text.h"

#include <fmt/format.h>

#include <iterator>

namespace deepinfer {

std::string Grouped(int64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool boundary = i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0;
    if (boundary) text += ',';
    text += digits[i];
  }
  return text;
}

std::string ShortBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

}  // namespace deepinfer
