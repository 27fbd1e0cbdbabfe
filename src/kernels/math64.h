// Elementary functions in fp64, for tables and for the sampler: our own series, so that the bits do
// not depend on the C library.  Accurate to a few ulp of fp64, far below one fp32 rounding.
#pragma once

namespace deepinfer {

struct SinCos {
  double sin;
  double cos;
};

// |x| <= 2^22.
SinCos SinCosF64(double x);
// Below -745: 0; above 709: infinity.
double ExpF64(double x);
// Natural logarithm of a positive normal number.
double LogF64(double x);
// log(1 + x), x >= 0.
double Log1pF64(double x);
// base > 0.
double PowF64(double base, double exponent);

}  // namespace deepinfer
