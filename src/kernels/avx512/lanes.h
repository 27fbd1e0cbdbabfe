// The lanes of kernels/vector for AVX-512: one register each.  Only included by avx512/*.cc.
#pragma once

#include "kernels/avx512/f32.h"
#include "kernels/avx512/f64.h"
#include "kernels/avx512/i32.h"

namespace deepinfer::avx512 {

struct Lanes {
  using F32 = avx512::F32;
  using F64 = avx512::F64;
  using I32 = avx512::I32;
  using Mask = avx512::Mask;
  using Mask64 = avx512::Mask64;
  using ByteDot = avx512::ByteDot;
  static constexpr int kIndexTiles = 3;  // of sixteen keys: 32 registers hold the sums of three
  static constexpr int kIndexHeads = 4;  // that meet them together: a divisor of sixteen
};

}  // namespace deepinfer::avx512
