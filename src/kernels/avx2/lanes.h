// The lanes of kernels/vector for AVX2: two registers each.  Only included by avx2/*.cc.
#pragma once

#include "kernels/avx2/f32.h"
#include "kernels/avx2/f64.h"
#include "kernels/avx2/i32.h"

namespace deepinfer::avx2 {

struct Lanes {
  using F32 = avx2::F32;
  using F64 = avx2::F64;
  using I32 = avx2::I32;
  using Mask = avx2::Mask;
  using Mask64 = avx2::Mask64;
  using ByteDot = avx2::ByteDot;
  static constexpr int kIndexTiles = 1;  // of sixteen keys: 16 registers hold the sums of one
  static constexpr int kIndexHeads = 4;  // that meet them together: a divisor of sixteen
};

}  // namespace deepinfer::avx2
