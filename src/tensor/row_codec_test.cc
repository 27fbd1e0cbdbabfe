// The quantisers and the byte layout of cached rows (docs/formats/kv-rows.md).
#include "tensor/row_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/bf16.h"
#include "tensor/fp4.h"
#include "tensor/fp8.h"
#include "tensor/quant.h"
#include "tests/support/op_goldens.h"

namespace deepinfer {
namespace {

constexpr RowFormat kAllFormats[] = {RowFormat::kF32, RowFormat::kFp8E8M0, RowFormat::kFp4E8M0,
                                     RowFormat::kFp4E4M3};

std::vector<uint8_t> Encode(RowFormat format, const std::vector<float>& row) {
  std::vector<uint8_t> out(static_cast<size_t>(RowBytes(format, static_cast<int64_t>(row.size()))));
  EncodeRow(format, row, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

std::vector<float> Decode(RowFormat format, const std::vector<uint8_t>& bytes, size_t dim) {
  std::vector<float> out(dim);
  DecodeRow(format, reinterpret_cast<const std::byte*>(bytes.data()), out);
  return out;
}

std::vector<float> RoundTrip(RowFormat format, const std::vector<float>& row) {
  return Decode(format, Encode(format, row), row.size());
}

// One row of a golden of 64 columns.
std::vector<float> RowOf(const std::vector<float>& all, size_t row) {
  return {all.begin() + static_cast<int64_t>(row) * 64,
          all.begin() + static_cast<int64_t>(row + 1) * 64};
}

// Codes, scale codes and values of a golden of ops_extra.json.
void ExpectGolden(const char* name, RowFormat format, size_t group) {
  const nlohmann::json golden = OpGoldens("ops_extra")[name];
  const std::vector<float> x = Floats(golden["x"]);
  const std::vector<float> y = Floats(golden["dequant_bf16"]);
  const std::vector<uint8_t> codes = Integers<uint8_t>(golden["code"]);
  const std::vector<uint8_t> scales = Integers<uint8_t>(golden["scale_code"]);
  const bool packed = format != RowFormat::kFp8E8M0;
  for (size_t row = 0; row < x.size() / 64; ++row) {
    const std::vector<uint8_t> bytes = Encode(format, RowOf(x, row));
    for (size_t i = 0; i < 64; ++i) {
      const uint8_t code = packed ? NibbleOf(bytes.data(), static_cast<int64_t>(i)) : bytes[i];
      ASSERT_EQ(code, codes[row * 64 + i]) << name << " row " << row << " column " << i;
    }
    for (size_t g = 0; g < 64 / group; ++g) {
      ASSERT_EQ(bytes[(packed ? 32 : 64) + g], scales[row * (64 / group) + g]) << name << row;
    }
    ExpectSameBits(Decode(format, bytes, 64), RowOf(y, row));
  }
}

TEST(RowCodecTest, WindowRowsAreActQuantAsTheGoldens) {
  ExpectGolden("act_quant_fp8_32", RowFormat::kFp8E8M0, 32);
}

TEST(RowCodecTest, IndexRowsAreFp4WithPowerOfTwoScalesAsTheGoldens) {
  ExpectGolden("fp4_e8m0_32", RowFormat::kFp4E8M0, 32);
}

TEST(RowCodecTest, LatentRowsAreFp4WithE4M3ScalesAsTheGoldens) {
  ExpectGolden("nvfp4_e4m3_16", RowFormat::kFp4E4M3, 16);
}

TEST(RowCodecTest, PublishedQuantisersGiveTheSameValues) {
  const nlohmann::json golden = OpGoldens("ops");
  const std::vector<float> x = Floats(golden["act_quant_block32_ue8m0"]["x"]);
  const std::vector<float> codes = Floats(golden["act_quant_block32_ue8m0"]["q"]);
  const std::vector<float> scales = Floats(golden["act_quant_block32_ue8m0"]["scale"]);
  for (size_t row = 0; row < 4; ++row) {
    const std::vector<float> values = RowOf(x, row);
    const std::vector<uint8_t> bytes = Encode(RowFormat::kFp8E8M0, values);
    for (size_t i = 0; i < 64; ++i) {
      ASSERT_TRUE(SameBits(DecodeE4M3(bytes[i]), codes[row * 64 + i])) << row << " " << i;
    }
    EXPECT_EQ(DecodeE8M0(bytes[64]), scales[row * 2]);
    EXPECT_EQ(DecodeE8M0(bytes[65]), scales[row * 2 + 1]);
    ExpectSameBits(RoundTrip(RowFormat::kFp8E8M0, values),
                   RowOf(Floats(golden["fp8_inplace_block32"]), row));
    ExpectSameBits(RoundTrip(RowFormat::kFp4E8M0, values),
                   RowOf(Floats(golden["fp4_inplace_block32_e8m0"]), row));
    ExpectSameBits(RoundTrip(RowFormat::kFp4E4M3, values),
                   RowOf(Floats(golden["fp4_inplace_block16_e4m3"]), row));
  }
}

TEST(RowCodecTest, RowsHaveTheirDocumentedSizes) {
  EXPECT_EQ(RowBytes(RowFormat::kFp8E8M0, 512), 528);
  EXPECT_EQ(RowBytes(RowFormat::kFp4E8M0, 128), 68);
  EXPECT_EQ(RowBytes(RowFormat::kFp4E4M3, 512), 288);
  EXPECT_EQ(RowBytes(RowFormat::kF32, 512), 2048);
}

TEST(RowCodecTest, DecodedValuesAreExactInBf16) {
  std::vector<float> row(96);
  for (size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i) * 1.7f) * 37.0f;
  for (const RowFormat format : kAllFormats) {
    if (format == RowFormat::kF32) continue;
    for (const float value : RoundTrip(format, row)) EXPECT_EQ(RoundToBf16(value), value);
  }
}

TEST(RowCodecTest, FullPrecisionRowsComeBackUnchanged) {
  const std::vector<float> row = {1.0f, -3.25f, 1e-30f, 7e20f};
  ExpectSameBits(RoundTrip(RowFormat::kF32, row), row);
}

TEST(RowCodecTest, BytesLieAsInTheDiagrams) {
  std::vector<float> row(32, 0.0f);
  row[0] = 6.0f;
  row[1] = -1.5f;
  row[31] = 3.0f;
  const std::vector<uint8_t> index = Encode(RowFormat::kFp4E8M0, row);  // scale 1
  EXPECT_EQ(index[0], 0xB7);   // column 0: 6 = code 7, column 1: -1.5 = code 11
  EXPECT_EQ(index[15], 0x50);  // column 31: 3 = code 5
  EXPECT_EQ(index[16], 127);
  const std::vector<uint8_t> latent = Encode(RowFormat::kFp4E4M3, row);  // scales 1 and 0.5
  EXPECT_EQ(latent[0], 0xB7);
  EXPECT_EQ(latent[15], 0x70);
  EXPECT_EQ(latent[16], 0x38);
  EXPECT_EQ(latent[17], 0x30);
  const std::vector<uint8_t> window = Encode(RowFormat::kFp8E8M0, row);  // 6 / 448 < 2^-6
  EXPECT_EQ(window[0], EncodeE4M3(384.0f));
  EXPECT_EQ(window[32], 127 - 6);
}

TEST(RowCodecTest, ARowOfZerosDecodesToZeros) {
  const std::vector<float> zeros(64, 0.0f);
  for (const RowFormat format : kAllFormats) ExpectSameBits(RoundTrip(format, zeros), zeros);
}

TEST(RowCodecTest, InfinityLeavesTheRestOfItsGroupFiniteAndNanTouchesOnlyItself) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const RowFormat format : kAllFormats) {
    if (format == RowFormat::kF32) continue;
    std::vector<float> row(32, 1.5f);
    row[3] = kInfinity;
    std::vector<float> decoded = RoundTrip(format, row);
    EXPECT_GT(decoded[3], 400.0f);
    for (size_t i = 4; i < row.size(); ++i) EXPECT_TRUE(std::isfinite(decoded[i]));
    row[3] = std::numeric_limits<float>::quiet_NaN();
    decoded = RoundTrip(format, row);
    for (size_t i = 4; i < row.size(); ++i) EXPECT_EQ(decoded[i], 1.5f);
  }
}

}  // namespace
}  // namespace deepinfer
