// The elementary functions of kernels/math.h and kernels/math64.h, lane by lane: the same steps,
// the same bits.
#pragma once

#include "kernels/math.h"
#include "kernels/math64_series.h"
#include "kernels/vector/lanes.h"

namespace deepinfer::vector {

template <class V>
[[gnu::always_inline]] inline typename V::F32 ExpF32(typename V::F32 x) {
  using F32 = typename V::F32;
  using I32 = typename V::I32;
  const F32 clamped = Min(F32::Set(math::kExpMax), Max(F32::Set(math::kExpMin), x));
  const F32 shifter = F32::Set(math::kRoundShifter);
  const F32 shifted = Fma(clamped, F32::Set(math::kLog2E), shifter);
  const F32 n = shifted - shifter;
  const F32 r = Fma(n, F32::Set(-math::kLn2Low), Fma(n, F32::Set(-math::kLn2High), clamped));
  F32 p = F32::Set(math::kExpTaylor[0]);
  for (int i = 1; i < 6; ++i) p = Fma(p, r, F32::Set(math::kExpTaylor[i]));
  p = Fma(p, r, F32::Set(1.0f));
  p = Fma(p, r, F32::Set(1.0f));
  const I32 whole = Bits(shifted) - Bits(shifter);
  const I32 half = ShiftRightSigned<1>(whole);
  const I32 bias = I32::Set(127);
  return p * FromBits(ShiftLeft<23>(half + bias)) * FromBits(ShiftLeft<23>((whole - half) + bias));
}

template <class V>
[[gnu::always_inline]] inline typename V::F32 SiluF32(typename V::F32 x) {
  using F32 = typename V::F32;
  const F32 negative = FromBits(Bits(x) + Bits(F32::Set(-0.0f)));  // -x: the sign bit flips
  return x / (F32::Set(1.0f) + ExpF32<V>(negative));
}

// Coefficients of a power series, highest power first.
template <class F64, int kTerms>
[[gnu::always_inline]] inline F64 Horner(F64 x, const double (&coefficients)[kTerms]) {
  F64 p = F64::Set(coefficients[0]);
  for (int i = 1; i < kTerms; ++i) p = Fma(p, x, F64::Set(coefficients[i]));
  return p;
}

// 2^n for whole n in [-1022, 1023].
template <class F64>
[[gnu::always_inline]] inline F64 TwoToTheF64(F64 n) {
  // In 1.5 * 2^52 + (n + 1023) the low bits are the exponent field.
  return ShiftBitsLeft<52>(n + F64::Set(0x1.8p+52 + 1023));
}

template <class F64>
[[gnu::always_inline]] inline F64 ExpF64(F64 x) {
  using namespace math64;  // NOLINT: the series of this function
  const F64 n = Nearest(x * F64::Set(kLog2E));
  const F64 r = NegatedFma(n, F64::Set(kLn2Low), NegatedFma(n, F64::Set(kLn2High), x));
  const F64 half = Floor(n * F64::Set(0.5));
  const F64 y = Horner(r, kExp) * TwoToTheF64(half) * TwoToTheF64(n - half);
  const F64 floored = Select(x < F64::Set(kExpMin), F64::Zero(), y);
  const F64 capped = Select(x > F64::Set(kExpMax), F64::Set(__builtin_inf()), floored);
  return Select(IsNan(x), x, capped);
}

// Natural logarithm of positive normal numbers.
template <class F64>
[[gnu::always_inline]] inline F64 LogF64(F64 x) {
  using namespace math64;  // NOLINT: the series of this function
  // The exponent field as a number: below 2^52 the low bits of 2^52 + e are e.
  const F64 two52 = F64::Set(0x1p+52);
  F64 e = BitOr(ShiftBitsRight<52>(x), two52) - (two52 + F64::Set(1023));
  const F64 fraction = F64::Set(__builtin_bit_cast(double, 0x000FFFFFFFFFFFFFLL));
  F64 m = BitOr(BitAnd(x, fraction), F64::Set(1.0));
  const auto large = m > F64::Set(kSqrt2);
  m = Select(large, m * F64::Set(0.5), m);
  e = Select(large, e + F64::Set(1), e);
  const F64 s = (m - F64::Set(1)) / (m + F64::Set(1));
  const F64 z = s * s;
  const F64 two_s = F64::Set(2) * s;
  const F64 log_m = Fma(two_s * z, Horner(z, kAtanh), two_s);
  return Fma(e, F64::Set(kLn2High), Fma(e, F64::Set(kLn2Low), log_m));
}

template <class F64>
[[gnu::always_inline]] inline F64 Log1pF64(F64 x) {
  const F64 sum = F64::Set(1) + x;
  return LogF64(sum) + (x - (sum - F64::Set(1))) / sum;
}

template <class V>
[[gnu::always_inline]] inline typename V::F32 PreciseExp(typename V::F32 x) {
  return Narrow(ExpF64(Low(x)), ExpF64(High(x)));
}

template <class V>
[[gnu::always_inline]] inline typename V::F32 PreciseSoftplus(typename V::F32 z) {
  const auto soft = Narrow(Log1pF64(ExpF64(Low(z))), Log1pF64(ExpF64(High(z))));
  return Select(z > V::F32::Set(20.0f), z, soft);
}

}  // namespace deepinfer::vector
