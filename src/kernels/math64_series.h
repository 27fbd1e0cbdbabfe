// Coefficients of the fp64 functions of math64.h, for their scalar and their vector forms
// (docs/formats/numerics.md section 7).
#pragma once

namespace deepinfer::math64 {

consteval double InverseFactorial(int n) {
  double product = 1;  // exact up to 18!
  for (int i = 2; i <= n; ++i) product *= i;
  return 1 / product;
}

// ln 2 in two parts: n * kLn2High is exact for |n| < 2^11.
inline constexpr double kLn2High = 0x1.62e42fefap-1;
inline constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
inline constexpr double kLog2E = 0x1.71547652b82fep+0;
inline constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;

inline constexpr double kExpMin = -745;   // below: 0
inline constexpr double kExpMax = 709.7;  // above: infinity

// e^r, |r| <= ln 2 / 2: the term left out is below 2^-57.
inline constexpr double kExp[] = {InverseFactorial(13),
                                  InverseFactorial(12),
                                  InverseFactorial(11),
                                  InverseFactorial(10),
                                  InverseFactorial(9),
                                  InverseFactorial(8),
                                  InverseFactorial(7),
                                  InverseFactorial(6),
                                  InverseFactorial(5),
                                  InverseFactorial(4),
                                  InverseFactorial(3),
                                  0.5,
                                  1,
                                  1};
// atanh(s) = s + s^3 * (series in s^2): 1/21, 1/19, ..., 1/3.
inline constexpr double kAtanh[] = {1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13,
                                    1. / 11, 1. / 9,  1. / 7,  1. / 5,  1. / 3};

}  // namespace deepinfer::math64
