#include "kernels/math64.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace deepinfer {
namespace {

// pi/2 in three parts of 33, 33 and 53 bits: n * part is exact for |n| < 2^20.
constexpr double kHalfPi1 = 0x1.921fb544p+0;
constexpr double kHalfPi2 = 0x1.0b4611a6p-34;
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

// ln 2 in two parts: n * kLn2High is exact for |n| < 2^11.
constexpr double kLn2High = 0x1.62e42fefap-1;
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
constexpr double kLog2E = 0x1.71547652b82fep+0;

// Horner evaluation of 1 + c[0] z + c[0] c[1] z^2 + ..., c[i] = 1 / d[i] of a Taylor series.
template <int kTerms>
double TaylorProduct(double z, const double (&divisors)[kTerms]) {
  double p = 1;
  for (int i = kTerms - 1; i >= 0; --i) p = std::fma(z / divisors[i], p, 1.0);
  return p;
}

// |r| <= pi/4: the term left out is below 2^-60.
double SinKernel(double r) {
  return r * TaylorProduct(
                 -r * r, {2. * 3, 4. * 5, 6. * 7, 8. * 9, 10. * 11, 12. * 13, 14. * 15, 16. * 17});
}

double CosKernel(double r) {
  return TaylorProduct(
      -r * r, {1. * 2, 3. * 4, 5. * 6, 7. * 8, 9. * 10, 11. * 12, 13. * 14, 15. * 16, 17. * 18});
}

double TwoToThe(int64_t n) { return std::bit_cast<double>((n + 1023) << 52); }

}  // namespace

SinCos SinCosF64(double x) {
  const double n = std::nearbyint(x * kTwoOverPi);
  const double r = std::fma(-n, kHalfPi3, std::fma(-n, kHalfPi2, std::fma(-n, kHalfPi1, x)));
  const double s = SinKernel(r);
  const double c = CosKernel(r);
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
  if (x < -745) return 0;
  if (x > 709.7) return std::numeric_limits<double>::infinity();
  const double n = std::nearbyint(x * kLog2E);
  const double r = std::fma(-n, kLn2Low, std::fma(-n, kLn2High, x));
  const double p = TaylorProduct(r, {1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13.});
  const auto whole = static_cast<int64_t>(n);
  return p * TwoToThe(whole >> 1) * TwoToThe(whole - (whole >> 1));
}

double LogF64(double x) {
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)).
  const auto bits = std::bit_cast<uint64_t>(x);
  int64_t e = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++e;
  }
  const double s = (m - 1) / (m + 1);
  const double z = s * s;  // <= 0.0295: z^10 / 21 is below 2^-55
  double p = 0;
  for (int i = 21; i >= 3; i -= 2) p = std::fma(p, z, 1.0 / i);
  const double log_m = std::fma(2 * s * z, p, 2 * s);
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
