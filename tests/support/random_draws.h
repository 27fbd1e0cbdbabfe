// Random numbers that a seed repeats, for tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/random.h"

namespace deepinfer {

class RandomDraws {
 public:
  explicit RandomDraws(uint64_t seed) : seed_(seed) {}

  double Uniform() {
    const PhiloxBlock block = Philox(seed_, {count_++, 0, 0, 0});
    return UniformOpen(block[0], block[1]);
  }
  // 0 to end - 1.
  int64_t Below(int64_t end) { return static_cast<int64_t>(Uniform() * static_cast<double>(end)); }
  bool Chance(double share) { return Uniform() < share; }
  double Normal() {
    return std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  uint64_t seed_;
  uint32_t count_ = 0;
};

}  // namespace deepinfer
