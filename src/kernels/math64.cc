#include "kernels/math64.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/math64_series.h"

namespace deepinfer {
namespace {

using namespace math64;  // NOLINT: the series of this file

// pi/2 in three parts of 33, 33 and 53 bits.  x - n * part 1 is exact for every fp32 x and n up to
// 2^22: a multiple of 2^-33 (or of the last bit of x) that is smaller than 2.
constexpr double kHalfPi1 = 0x1.921fb544p+0;
constexpr double kHalfPi2 = 0x1.0b4611a6p-34;
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

// Coefficients of a power series, highest power first.
template <size_t kTerms>
double Horner(double x, const double (&coefficients)[kTerms]) {
  double p = coefficients[0];
  for (size_t i = 1; i < kTerms; ++i) p = std::fma(p, x, coefficients[i]);
  return p;
}

// sin(r) / r and cos(r) as series in r^2, |r| <= pi/4: the terms left out are below 2^-60.
constexpr double kSin[] = {InverseFactorial(17),  -InverseFactorial(15), InverseFactorial(13),
                           -InverseFactorial(11), InverseFactorial(9),   -InverseFactorial(7),
                           InverseFactorial(5),   -InverseFactorial(3),  1};
constexpr double kCos[] = {-InverseFactorial(18),
                           InverseFactorial(16),
                           -InverseFactorial(14),
                           InverseFactorial(12),
                           -InverseFactorial(10),
                           InverseFactorial(8),
                           -InverseFactorial(6),
                           InverseFactorial(4),
                           -0.5,
                           1};
double TwoToThe(int64_t n) { return std::bit_cast<double>((n + 1023) << 52); }

}  // namespace

SinCos SinCosF64(double x) {
  const double n = std::nearbyint(x * kTwoOverPi);
  const double r = std::fma(-n, kHalfPi3, std::fma(-n, kHalfPi2, std::fma(-n, kHalfPi1, x)));
  const double s = r * Horner(r * r, kSin);
  const double c = Horner(r * r, kCos);
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {.sin = s, .cos = c};
    case 1:
      return {.sin = c, .cos = -s};
    case 2:
      return {.sin = -s, .cos = -c};
    default:
      return {.sin = -c, .cos = s};
  }
}

double ExpF64(double x) {
  if (x < kExpMin) return 0;
  if (x > kExpMax) return std::numeric_limits<double>::infinity();
  if (x != x) return x;
  const double n = std::nearbyint(x * kLog2E);
  const double r = std::fma(-n, kLn2Low, std::fma(-n, kLn2High, x));
  const double p = Horner(r, kExp);
  const auto whole = static_cast<int64_t>(n);
  return p * TwoToThe(whole >> 1) * TwoToThe(whole - (whole >> 1));
}

double LogF64(double x) {
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)).
  const auto bits = std::bit_cast<uint64_t>(x);
  int64_t e = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
  if (m > kSqrt2) {
    m *= 0.5;
    ++e;
  }
  const double s = (m - 1) / (m + 1);
  const double z = s * s;  // <= 0.0295: z^10 / 21 is below 2^-55
  const double log_m = std::fma(2 * s * z, Horner(z, kAtanh), 2 * s);
  return std::fma(static_cast<double>(e), kLn2High,
                  std::fma(static_cast<double>(e), kLn2Low, log_m));
}

double Log1pF64(double x) {
  // What 1 + x rounded away comes back as a first-order correction.
  const double sum = 1 + x;
  return LogF64(sum) + (x - (sum - 1)) / sum;
}

double PowF64(double base, double exponent) { return ExpF64(exponent * LogF64(base)); }

}  // namespace deepinfer
