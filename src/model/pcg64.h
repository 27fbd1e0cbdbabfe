// numpy's default generator, as far as the n-gram multipliers need it: SeedSequence, PCG64 (XSL-RR,
// 128 bits of state) and unbiased bounded integers.  The released tables were built with it.
#pragma once

#include <cstdint>

namespace deepinfer {

// Same values as numpy.random.default_rng(seed).
class Pcg64 {
 public:
  explicit Pcg64(uint64_t seed);

  // As Generator.integers(0, bound, dtype=int64); bound >= 1.
  uint64_t Below(uint64_t bound);

 private:
  __extension__ using Uint128 = unsigned __int128;

  uint64_t Next64();
  uint32_t Next32();
  void Step();

  Uint128 state_ = 0;
  Uint128 increment_ = 0;
  bool has_half_ = false;  // the upper half of a 64-bit draw waits in half_
  uint32_t half_ = 0;
};

}  // namespace deepinfer
