// Elementary functions in fp32 (docs/formats/numerics.md section 7): the same bits everywhere.
// Every instruction set repeats these steps; the scalar form here is the definition.
// Against the exact functions: ExpF32 at most 1 ulp, SiluF32 2.5 ulp, the precise ones half an ulp
// (math_test.cc).  NaN in, NaN out.
//
// Always inlined: files compiled for different instruction sets include this header, and the
// linker must not give one of them the copy of another.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/math64.h"

namespace deepinfer {

namespace math {

inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2High = 0.693359375f;      // 9 bits: n * kLn2High is exact
inline constexpr float kLn2Low = -2.12194440e-4f;    // ln 2 - kLn2High
inline constexpr float kRoundShifter = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
inline constexpr float kExpMin = -104.0f;            // below: 0
inline constexpr float kExpMax = 89.0f;              // above: infinity
// 1/7!, 1/6!, ..., 1/2!
inline constexpr float kExpTaylor[] = {1.98412698e-4f, 1.38888889e-3f, 8.33333333e-3f,
                                       4.16666667e-2f, 1.66666667e-1f, 0.5f};

[[gnu::always_inline]] inline float Fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
[[gnu::always_inline]] inline float TwoToThe(int32_t n) {
  return std::bit_cast<float>((static_cast<uint32_t>(n) + 127) << 23);
}

}  // namespace math

[[gnu::always_inline]] inline float ExpF32(float x) {
  using namespace math;  // NOLINT: constants of this header only
  float clamped = x < kExpMin ? kExpMin : x;
  clamped = clamped > kExpMax ? kExpMax : clamped;
  const float shifted = Fma(clamped, kLog2E, kRoundShifter);
  const float n = shifted - kRoundShifter;
  const float r = Fma(n, -kLn2Low, Fma(n, -kLn2High, clamped));
  float p = kExpTaylor[0];
  for (int i = 1; i < 6; ++i) p = Fma(p, r, kExpTaylor[i]);
  p = Fma(p, r, 1.0f);
  p = Fma(p, r, 1.0f);
  // The low bits of `shifted` are n.  Two factors, so that neither leaves the normal range.
  const auto whole = static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) -
                                          std::bit_cast<uint32_t>(kRoundShifter));
  const int32_t half = whole >> 1;
  return p * TwoToThe(half) * TwoToThe(whole - half);
}

[[gnu::always_inline]] inline float SiluF32(float x) { return x / (1.0f + ExpF32(-x)); }

// The few values that scale a whole row (hyper-connection mixes, routing, gates) are evaluated in
// fp64 and rounded once: an error of one ulp there would show in every channel.
[[gnu::always_inline]] inline float PreciseExp(float x) {
  return static_cast<float>(ExpF64(static_cast<double>(x)));
}
[[gnu::always_inline]] inline float PreciseSigmoid(float x) {
  return static_cast<float>(1.0 / (1.0 + ExpF64(-static_cast<double>(x))));
}
[[gnu::always_inline]] inline float PreciseSoftplus(float z) {
  return z > 20.0f ? z : static_cast<float>(Log1pF64(ExpF64(static_cast<double>(z))));
}

}  // namespace deepinfer
