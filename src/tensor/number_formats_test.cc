// Every number format against the goldens, code by code and rounding by rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/bf16.h"
#include "tensor/fp4.h"
#include "tensor/fp8.h"
#include "tests/support/op_goldens.h"

namespace deepinfer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Bf16Test, RoundsAsTheGoldens) {
  const nlohmann::json golden = OpGoldens("ops_extra")["bf16_round"];
  std::vector<float> y;
  for (const float x : FloatsFromBits(golden["x_bits"])) y.push_back(RoundToBf16(x));
  ExpectSameBits(y, FloatsFromBits(golden["y_bits"]));
}

TEST(Bf16Test, EveryCodeSurvivesTheRoundTrip) {
  for (uint32_t code = 0; code <= 0xFFFF; ++code) {
    const float value = Bf16ToFloat(static_cast<uint16_t>(code));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(RoundToBf16(value)));
    } else {
      ASSERT_EQ(FloatToBf16(value), code);
    }
  }
}

TEST(Bf16Test, TiesGoToTheEvenCodeAndTooLargeBecomesInfinite) {
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3F818000u)), 0x3F82);
  EXPECT_EQ(FloatToBf16(std::bit_cast<float>(0x3F808001u)), 0x3F81);
  EXPECT_EQ(RoundToBf16(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(RoundToBf16(-kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(RoundToBf16(std::bit_cast<float>(0x7F800001u))));
}

TEST(E4M3Test, DecodesEveryCodeAsTheGoldens) {
  std::vector<float> y;
  for (int code = 0; code < 256; ++code) y.push_back(DecodeE4M3(static_cast<uint8_t>(code)));
  ExpectSameBits(y, FloatsFromBits(OpGoldens("ops_extra")["e4m3_values_bits"]));
  ExpectSameBits(y, Floats(OpGoldens("ops")["e4m3_decode_table"]));
}

TEST(E4M3Test, EncodesAsTheGoldens) {
  const nlohmann::json golden = OpGoldens("ops_extra")["e4m3_round"];
  const std::vector<float> x = FloatsFromBits(golden["x_bits"]);
  const std::vector<uint8_t> codes = Integers<uint8_t>(golden["code"]);
  const std::vector<float> y = Floats(golden["y"]);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(EncodeE4M3(x[i]), codes[i]) << x[i];
    ASSERT_TRUE(SameBits(DecodeE4M3(EncodeE4M3(x[i])), y[i])) << x[i];
  }
}

TEST(E4M3Test, EveryFloatGoesToTheNearestCode) {
  // All positive floats whose lower 12 bits are zero: every rounding case of a 3-bit mantissa.
  for (uint32_t bits = 0x30000000; bits < std::bit_cast<uint32_t>(448.0f); bits += 0x1000) {
    const float x = std::bit_cast<float>(bits);
    const uint8_t code = EncodeE4M3(x);
    const auto error = [&](int candidate) {
      return std::fabs(static_cast<double>(DecodeE4M3(static_cast<uint8_t>(candidate))) -
                       static_cast<double>(x));
    };
    if (code > 0) {
      ASSERT_LE(error(code), error(code - 1)) << x;
    }
    if (code < 0x7E) {
      ASSERT_LE(error(code), error(code + 1)) << x;
    }
    if (code > 0 && error(code) == error(code - 1)) {
      ASSERT_EQ(code % 2, 0) << x;
    }
    ASSERT_EQ(EncodeE4M3(-x), code | 0x80) << x;
  }
}

TEST(E4M3Test, LargeValuesSaturateAndNanStaysNan) {
  EXPECT_EQ(EncodeE4M3(1e30f), 0x7E);
  EXPECT_EQ(EncodeE4M3(-kInfinity), 0xFE);
  EXPECT_EQ(EncodeE4M3(kNan) & 0x7F, 0x7F);
  EXPECT_EQ(EncodeE4M3(-0.0f), 0x80);
}

TEST(E8M0Test, DecodesEveryCodeAsTheGoldens) {
  std::vector<float> y;
  for (int code = 0; code < 256; ++code) y.push_back(DecodeE8M0(static_cast<uint8_t>(code)));
  ExpectSameBits(y, FloatsFromBits(OpGoldens("ops_extra")["e8m0_values_bits"]));
}

TEST(E8M0Test, SmallestPowerOfTwoNotBelowAsTheGoldens) {
  const nlohmann::json golden = OpGoldens("ops_extra")["p2c"];
  std::vector<float> y;
  for (const float x : FloatsFromBits(golden["x_bits"])) y.push_back(DecodeE8M0(CeilPowerOfTwo(x)));
  ExpectSameBits(y, FloatsFromBits(golden["y_bits"]));
}

TEST(E2M1Test, EncodesEveryTieAndItsNeighboursAsTheGoldens) {
  const nlohmann::json golden = OpGoldens("ops_extra")["e2m1_round"];
  const std::vector<float> x = FloatsFromBits(golden["x_bits"]);
  const std::vector<uint8_t> codes = Integers<uint8_t>(golden["code"]);
  const std::vector<float> y = Floats(golden["y"]);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(EncodeE2M1(x[i]), codes[i]) << x[i];
    ASSERT_TRUE(SameBits(kE2M1Values[EncodeE2M1(x[i])], y[i])) << x[i];
  }
  const nlohmann::json ties = OpGoldens("ops")["round_e2m1_ties"];
  std::vector<float> rounded;
  for (const float tie : Floats(ties["x"])) rounded.push_back(kE2M1Values[EncodeE2M1(tie)]);
  ExpectSameBits(rounded, Floats(ties["y"]));
}

TEST(E2M1Test, LargeValuesSaturateAndNanBecomesZero) {
  EXPECT_EQ(EncodeE2M1(kInfinity), 7);
  EXPECT_EQ(EncodeE2M1(-100.0f), 15);
  EXPECT_EQ(EncodeE2M1(kNan) & 7, 0);
}

TEST(E2M1Test, LowNibbleIsTheEvenColumn) {
  const uint8_t packed[] = {0x21, 0xF3};
  EXPECT_EQ(NibbleOf(packed, 0), 1);
  EXPECT_EQ(NibbleOf(packed, 1), 2);
  EXPECT_EQ(NibbleOf(packed, 2), 3);
  EXPECT_EQ(NibbleOf(packed, 3), 15);
  for (int code = 0; code < 16; ++code) {
    EXPECT_EQ(static_cast<float>(kE2M1Doubled[static_cast<size_t>(code)]),
              2 * kE2M1Values[static_cast<size_t>(code)]);
  }
}

TEST(WeightFormatTest, ReleasedSampleOfAnFp8RowDecodes) {
  // The first bytes of layers.0.attn.wkv.weight, scale byte 0x73 (model.md section 2.1).
  const uint8_t codes[] = {0xd8, 0x71, 0xf2, 0x79, 0x70, 0x69, 0xf0, 0xe5};
  const float values[] = {-0.00390625f, 0.03515625f,  -0.0390625f, 0.0703125f,
                          0.03125f,     0.017578125f, -0.03125f,   -0.0126953125f};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(DecodeE4M3(codes[i]) * DecodeE8M0(0x73), values[i]);
}

}  // namespace
}  // namespace deepinfer
