// Elementary functions against long double, over ranges dense enough to meet every rounding.
#include "kernels/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/exec_context.h"
#include "kernels/math64.h"

namespace deepinfer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// |found - exact| in units of the last place of a `digits`-bit number near `exact`.
double Ulps(long double found, long double exact, int digits) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return static_cast<double>(std::fabs(found - exact) / std::ldexp(1.0L, exponent - digits));
}

// Largest error of `found` over floats of both signs, wherever `exact` is a normal fp32 number.
template <typename Found, typename Exact>
double WorstUlps(float limit, const Found& found, const Exact& exact) {
  double worst = 0;
  for (uint32_t bits = 0x00800000; bits < std::bit_cast<uint32_t>(limit); bits += 4099) {
    for (const float x : {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)}) {
      const long double y = exact(static_cast<long double>(x));
      if (!(std::fabs(y) > 1.2e-38L && std::fabs(y) < 3.4e38L)) continue;
      worst = std::max(worst, Ulps(static_cast<long double>(found(x)), y, 24));
    }
  }
  return worst;
}

TEST(MathTest, ExpStaysWithinOneUlp) {
  EXPECT_LE(
      WorstUlps(
          89.0f, [](float x) { return ExpF32(x); }, [](long double x) { return std::exp(x); }),
      1.0);
}

TEST(MathTest, SiluStaysWithinTwoAndAHalfUlp) {
  EXPECT_LE(WorstUlps(
                80.0f, [](float x) { return SiluF32(x); },
                [](long double x) { return x / (1 + std::exp(-x)); }),
            2.5);
}

TEST(MathTest, PreciseFunctionsRoundOnce) {
  EXPECT_LE(
      WorstUlps(
          89.0f, [](float x) { return PreciseExp(x); }, [](long double x) { return std::exp(x); }),
      0.5001);
  EXPECT_LE(WorstUlps(
                87.0f, [](float x) { return PreciseSigmoid(x); },
                [](long double x) { return 1 / (1 + std::exp(-x)); }),
            0.5001);
  EXPECT_LE(WorstUlps(
                20.0f, [](float x) { return PreciseSoftplus(x); },
                [](long double x) { return std::log1p(std::exp(x)); }),
            0.5001);
}

TEST(MathTest, ExpSaturatesAndKeepsNan) {
  const FlushDenormals flush;
  EXPECT_EQ(ExpF32(0.0f), 1.0f);
  EXPECT_EQ(ExpF32(-1e30f), 0.0f);
  EXPECT_EQ(ExpF32(-kInfinity), 0.0f);
  EXPECT_EQ(ExpF32(-95.0f), 0.0f);  // a denormal, flushed
  EXPECT_EQ(ExpF32(kInfinity), kInfinity);
  EXPECT_EQ(ExpF32(1e30f), kInfinity);
  EXPECT_TRUE(std::isnan(ExpF32(kNan)));
  EXPECT_TRUE(std::isnan(PreciseExp(kNan)));
  EXPECT_EQ(PreciseSigmoid(-kInfinity), 0.0f);
  EXPECT_EQ(PreciseSigmoid(kInfinity), 1.0f);
  EXPECT_EQ(PreciseSoftplus(20.5f), 20.5f);
}

TEST(Math64Test, SineAndCosineHoldUpToTheLastPosition) {
  double worst = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const float x = static_cast<float>(i) * 4.194f;  // up to 2^22
    const SinCos found = SinCosF64(static_cast<double>(x));
    const auto exact = static_cast<long double>(x);
    worst = std::max(worst, static_cast<double>(std::fabs(found.sin - std::sin(exact))));
    worst = std::max(worst, static_cast<double>(std::fabs(found.cos - std::cos(exact))));
  }
  EXPECT_LE(worst, 0x1p-52);
}

TEST(Math64Test, SineAndCosineHoldNextToMultiplesOfHalfPi) {
  for (int n = 1; n < 2'600'000; n += 997) {
    const auto x = static_cast<float>(n * 1.57079632679489661923L);
    const SinCos found = SinCosF64(static_cast<double>(x));
    const auto exact = static_cast<long double>(x);
    EXPECT_NEAR(found.sin, static_cast<double>(std::sin(exact)), 0x1p-52);
    EXPECT_NEAR(found.cos, static_cast<double>(std::cos(exact)), 0x1p-52);
  }
}

TEST(Math64Test, ExpLogAndPowAreAccurateToAFewUlps) {
  double worst_exp = 0;
  double worst_log = 0;
  for (int i = -200'000; i <= 200'000; ++i) {
    const double x = i * 3.5e-3;  // +-700
    const auto exact = static_cast<long double>(x);
    worst_exp = std::max(worst_exp, Ulps(ExpF64(x), std::exp(exact), 53));
    const double y = std::exp(x);
    if (y == 1.0) continue;
    worst_log = std::max(worst_log, Ulps(LogF64(y), std::log(static_cast<long double>(y)), 53));
  }
  EXPECT_LE(worst_exp, 2.0);
  EXPECT_LE(worst_log, 3.0);
  EXPECT_EQ(LogF64(1.0), 0.0);
  EXPECT_NEAR(PowF64(160000.0, 0.96875), std::pow(160000.0, 0.96875), 1e-9);
}

TEST(Math64Test, Log1pKeepsWhatOnePlusXLoses) {
  for (double x = 1e-30; x < 1e12; x *= 1.37) {
    EXPECT_LE(Ulps(Log1pF64(x), std::log1p(static_cast<long double>(x)), 53), 4.0) << x;
  }
}

}  // namespace
}  // namespace deepinfer
