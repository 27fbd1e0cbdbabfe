// Seeded inputs for every kernel, odd sizes and extreme values included, so that one test can hold
// every instruction set to the scalar bits, and every way of splitting the work to the whole.
// Test code only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace deepinfer {

// One call of one kernel.
struct KernelCase {
  std::string name;  // e.g. "matmul fp8 m3 n70 k96"

  // Runs the kernel of `table` over its whole axis in ranges of `grain`, denormals flushed.
  // -> every byte that it wrote
  std::function<std::vector<std::byte>(const KernelTable& table, int64_t grain)> run;
};

// The same list, with the same inputs, at every call.
std::vector<KernelCase> KernelCases();

// Seeded values; the same on every machine.
class CaseInputs {
 public:
  explicit CaseInputs(uint64_t seed) : state_(seed) {}

  uint32_t Bits();
  int64_t Below(int64_t bound) { return static_cast<int64_t>(Bits()) % bound; }

  // Around 0 with a standard deviation of `scale`.
  std::vector<float> Floats(int64_t count, float scale = 1);
  // The same, rounded to bf16: what ops hand to each other in release numerics.
  std::vector<float> Bf16Floats(int64_t count, float scale = 1);
  std::vector<uint16_t> Bf16(int64_t count, float scale = 1);
  // Magnitudes from 2^-120 to 2^40: sums that lose almost everything, products that underflow.
  std::vector<float> WideBf16Floats(int64_t count);
  std::vector<uint8_t> Bytes(int64_t count);
  // e4m3 codes without NaN.
  std::vector<uint8_t> E4M3(int64_t count);
  // Scale bytes in [low, high].
  std::vector<uint8_t> Scales(int64_t count, int low = 110, int high = 135);

 private:
  uint64_t state_;
};

}  // namespace deepinfer
