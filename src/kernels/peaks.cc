#include "kernels/peaks.h"

#include "base/check.h"
#include "kernels/isa_tables.h"

namespace deepinfer {
namespace {

constexpr int kChains = 16;

// What the compiler makes of plain loops on a baseline processor.
template <typename Accumulator, typename Value>
int64_t Dots(int64_t rounds) {
  Accumulator acc[kChains] = {};
  Value x[kChains];
  for (Value& value : x) value = 1;
  for (int64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kChains; ++i) acc[i] += static_cast<Accumulator>(x[i]) * x[i];
    asm volatile("" : : "r"(acc), "r"(x) : "memory");
  }
  return rounds * kChains;
}

void Read(const std::byte* data, size_t bytes) {
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  uint64_t seen[8] = {};
  for (size_t i = 0; i < bytes / sizeof(uint64_t); i += 8) {
    for (size_t k = 0; k < 8; ++k) seen[k] |= words[i + k];
  }
  asm volatile("" : : "r"(seen) : "memory");
}

}  // namespace

PeakLoops PeakLoopsOf(std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "avx512") return Avx512Peaks();
  if (isa == "avx2") return Avx2Peaks();
#endif
  CHECK(isa == "scalar");
  return {.bf16_dots = Dots<float, float>, .int8_dots = Dots<int32_t, int8_t>, .read = Read};
}

}  // namespace deepinfer
