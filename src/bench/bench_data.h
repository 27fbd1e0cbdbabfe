// Inputs of benchmarks: weights that rotate through more memory than any cache holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/pages.h"
#include "kernels/kernels.h"

namespace deepinfer {

// Memory filled with valid codes: no NaN in FP8, finite in bf16.
class WeightPool {
 public:
  explicit WeightPool(size_t bytes);

  // The next [n, k] matrix; begins again when the pool is used up, so that a matrix comes back only
  // after everything else was read.  Scales are shared by all.
  WeightView Next(WeightFormat format, int64_t n, int64_t k);

 private:
  PageBuffer memory_;
  size_t at_ = 0;
  std::vector<uint8_t> scales_;
};

// Seeded activations around 0.
std::vector<float> BenchActivations(int64_t count);

}  // namespace deepinfer
