// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace deepinfer {

// 1234567 -> "1,234,567"
std::string Grouped(int64_t value);
// 1400 -> "1.40 kB" (powers of 1000), at most four digits
std::string ShortBytes(int64_t bytes);

}  // namespace deepinfer
