// Inputs of benchmarks: weights that rotate through more memory than any cache holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace deepinfer {

// Move-only memory in huge pages filled with valid codes: no NaN in FP8, finite in bf16.
class WeightPool {
 public:
  explicit WeightPool(size_t bytes);
  WeightPool(const WeightPool&) = delete;
  WeightPool& operator=(const WeightPool&) = delete;
  ~WeightPool();

  // The next [n, k] matrix; begins again when the pool is used up, so that a matrix comes back only
  // after everything else was read.  Scales are shared by all.
  WeightView Next(WeightFormat format, int64_t n, int64_t k);

 private:
  uint8_t* data_;
  size_t bytes_;
  size_t at_ = 0;
  std::vector<uint8_t> scales_;
};

// Seeded activations around 0.
std::vector<float> BenchActivations(int64_t count);

}  // namespace deepinfer
