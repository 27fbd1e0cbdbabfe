// Seeded inputs for every kernel, odd sizes and extreme values included, so that one test can hold
// every instruction set to the scalar bits, every way of splitting the work to the whole, and one
// architecture to another.  No GoogleTest in here: digest.cc runs where there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace deepinfer {

class ExecContext;

// How a case runs its kernel over the whole axis, denormals flushed.
struct CaseRunner {
  const KernelTable& table;
  int64_t grain = int64_t{1} << 40;  // ranges of this length, one after the other
  ExecContext* context = nullptr;    // not null: through the op of kernels/ops.h, on its threads
};

// All that a case's kernels wrote.
struct CaseOutput {
  std::vector<std::byte> bytes;
  int64_t nans = 0;  // fp32 outputs that are NaN

  bool operator==(const CaseOutput&) const = default;
};

struct KernelCase {
  std::string name;  // e.g. "matmul fp8 m3 n70 k96"
  std::function<CaseOutput(const CaseRunner& runner)> run;
};

// The same list, with the same inputs, at every call.  No input is infinite or NaN.
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
  // Zeros of both signs, subnormals, the smallest normal numbers, numbers around 1, and numbers
  // below 2^max_exponent (at most 128).
  std::vector<float> ExtremeFloats(int64_t count, int max_exponent);
  std::vector<float> ExtremeBf16Floats(int64_t count, int max_exponent);
  std::vector<uint8_t> Bytes(int64_t count);
  // e4m3 codes without NaN.
  std::vector<uint8_t> E4M3(int64_t count);
  // Scale bytes in [low, high].
  std::vector<uint8_t> Scales(int64_t count, int low = 110, int high = 135);

 private:
  uint64_t state_;
};

}  // namespace deepinfer
