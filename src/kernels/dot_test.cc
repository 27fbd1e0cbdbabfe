// The dot product of docs/formats/numerics.md section 2 as the page words it: column orders by
// hand, lanes by std::fma, nothing shared with the kernels.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernels/column_order.h"
#include "kernels/exec_context.h"
#include "kernels/select.h"
#include "tensor/bf16.h"
#include "tensor/fp4.h"
#include "tensor/fp8.h"
#include "tests/kernel_cases/kernel_cases.h"

namespace deepinfer {
namespace {

bool SameBits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

// Lanes and tree over operand vectors in visiting order.
float DotByTheBook(const std::vector<float>& x, const std::vector<float>& w) {
  float lane[16] = {};
  for (size_t v = 0; v < x.size(); v += 32) {
    for (size_t i = 0; i < 16; ++i) {
      lane[i] = std::fma(x[v + 2 * i + 1], w[v + 2 * i + 1], lane[i]);
      lane[i] = std::fma(x[v + 2 * i], w[v + 2 * i], lane[i]);
    }
  }
  for (int i = 0; i < 8; ++i) lane[i] += lane[i + 8];
  for (int i = 0; i < 4; ++i) lane[i] += lane[i + 4];
  for (int i = 0; i < 2; ++i) lane[i] += lane[i + 2];
  return lane[0] + lane[1];
}

// Columns in visiting order, from the table of the page; k is padded to whole groups.
std::vector<int64_t> ColumnsByTheBook(ColumnOrder order, int64_t k) {
  std::vector<int64_t> columns;
  for (int64_t g = 0; columns.size() < static_cast<size_t>(PackedStride(order, k)); ++g) {
    const int vectors = order == ColumnOrder::kFp4 ? 4 : order == ColumnOrder::kFp8 ? 2 : 1;
    for (int64_t v = 0; v < vectors; ++v) {
      for (int64_t e = 0; e < 32; ++e) {
        columns.push_back(order == ColumnOrder::kFp4   ? 128 * g + 4 * e + v
                          : order == ColumnOrder::kFp8 ? 64 * g + 16 * (e / 8) + 8 * v + e % 8
                                                       : 32 * g + e);
      }
    }
  }
  return columns;
}

// Values of a weight row in natural order.
std::vector<float> RowValues(const WeightView& w, int64_t n) {
  std::vector<float> out;
  for (int64_t i = 0; i < w.k; ++i) {
    const auto* bytes = static_cast<const uint8_t*>(w.data);
    if (w.format == WeightFormat::kBf16) {
      out.push_back(Bf16ToFloat(static_cast<const uint16_t*>(w.data)[n * w.k + i]));
    } else if (w.format == WeightFormat::kFp8) {
      out.push_back(DecodeE4M3(bytes[n * w.k + i]) *
                    DecodeE8M0(w.scales[n / 32 * (w.k / 32) + i / 32]));
    } else {
      out.push_back(kE2M1Values[NibbleOf(bytes + n * w.k / 2, i)] *
                    DecodeE8M0(w.scales[n * (w.k / 32) + i / 32]));
    }
  }
  return out;
}

// A product computed by the kernels of `table` and by the book.
void ExpectByTheBook(const KernelTable& table, ColumnOrder order, const WeightView& w,
                     const std::vector<float>& x) {
  const FlushDenormals flush;
  std::vector<uint16_t> packed(static_cast<size_t>(PackedStride(order, w.k)));
  table.pack({.x = x.data(),
              .x_stride = w.k,
              .k = w.k,
              .quantize = false,
              .order = order,
              .out = packed.data()},
             0, 1);
  std::vector<float> y(static_cast<size_t>(w.n));
  table.matmul({.x = packed.data(),
                .order = order,
                .x_index = nullptr,
                .m = 1,
                .w = w,
                .y = y.data(),
                .y_stride = w.n,
                .round = false},
               0, w.n);
  for (int64_t n = 0; n < w.n; ++n) {
    const std::vector<float> row = RowValues(w, n);
    std::vector<float> x_operands;
    std::vector<float> w_operands;
    for (const int64_t column : ColumnsByTheBook(order, w.k)) {
      const auto c = static_cast<size_t>(column);
      x_operands.push_back(column < w.k ? x[c] : 0.0f);
      w_operands.push_back(column < w.k ? row[c] : 0.0f);
    }
    const float expected = DotByTheBook(x_operands, w_operands);
    ASSERT_TRUE(SameBits(y[static_cast<size_t>(n)], expected))
        << table.name << " k " << w.k << " row " << n << ": found " << y[static_cast<size_t>(n)]
        << ", expected " << expected;
  }
}

class DotTest : public testing::TestWithParam<const KernelTable*> {};

INSTANTIATE_TEST_SUITE_P(EveryIsa, DotTest, testing::ValuesIn(SupportedKernels()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST(ColumnOrderTest, GroupsAreVisitedAsTheTableSays) {
  // Spelled out: the first columns of each operand vector of the first group.
  constexpr int64_t kFp8First[] = {0, 1, 2, 3, 4, 5, 6, 7, 16, 17};
  constexpr int64_t kFp8Second[] = {8, 9, 10, 11, 12, 13, 14, 15, 24, 25};
  for (int64_t e = 0; e < 10; ++e) {
    EXPECT_EQ(ColumnAt(ColumnOrder::kFp8, e), kFp8First[e]);
    EXPECT_EQ(ColumnAt(ColumnOrder::kFp8, 32 + e), kFp8Second[e]);
    EXPECT_EQ(ColumnAt(ColumnOrder::kFp4, e), 4 * e);
    EXPECT_EQ(ColumnAt(ColumnOrder::kFp4, 96 + e), 4 * e + 3);
    EXPECT_EQ(ColumnAt(ColumnOrder::kNatural, 32 + e), 32 + e);
  }
  EXPECT_EQ(ColumnAt(ColumnOrder::kFp8, 31), 55);
  EXPECT_EQ(ColumnAt(ColumnOrder::kFp8, 63), 63);
  EXPECT_EQ(ColumnAt(ColumnOrder::kFp4, 31), 124);
  EXPECT_EQ(ColumnAt(ColumnOrder::kFp4, 127), 127);
  for (const ColumnOrder order : {ColumnOrder::kNatural, ColumnOrder::kFp8, ColumnOrder::kFp4}) {
    const std::vector<int64_t> columns = ColumnsByTheBook(order, 588);
    for (size_t at = 0; at < columns.size(); ++at) {
      ASSERT_EQ(ColumnAt(order, static_cast<int64_t>(at)), columns[at]);
    }
  }
}

// x is zero but for three columns that share a lane: 2^24, 1 and 1.  Weights are 1.  Adding the
// ones first gives 2^24 + 2; a one that meets 2^24 alone is rounded away.
float DotOfThree(const KernelTable& table, WeightFormat format, const int64_t (&columns)[3]) {
  const std::vector<uint16_t> bf16(128, FloatToBf16(1));
  const std::vector<uint8_t> fp8(128, EncodeE4M3(1));
  const std::vector<uint8_t> fp4(64, 0x22);
  const std::vector<uint8_t> scales(4, 127);
  const void* data = fp4.data();
  if (format == WeightFormat::kBf16) data = bf16.data();
  if (format == WeightFormat::kFp8) data = fp8.data();
  std::vector<float> x(128, 0.0f);
  x[static_cast<size_t>(columns[0])] = 0x1p24f;
  x[static_cast<size_t>(columns[1])] = 1;
  x[static_cast<size_t>(columns[2])] = 1;
  const auto order = static_cast<ColumnOrder>(format);
  std::vector<uint16_t> packed(128);
  table.pack({.x = x.data(),
              .x_stride = 128,
              .k = 128,
              .quantize = false,
              .order = order,
              .out = packed.data()},
             0, 1);
  float y = 0;
  table.matmul({.x = packed.data(),
                .order = order,
                .x_index = nullptr,
                .m = 1,
                .w = {.format = format, .data = data, .scales = scales.data(), .n = 1, .k = 128},
                .y = &y,
                .y_stride = 1,
                .round = false},
               0, 1);
  return y;
}

TEST_P(DotTest, LanesOf128ColumnsAreThoseWorkedOutByHand) {
  const KernelTable& table = *GetParam();
  // Lane 0, in the order of its additions.
  //   bf16: columns 1, 0, 33, 32, 65, 64, 97, 96
  //   FP8:  columns 1, 0 (v = 0), 9, 8 (v = 1), then 65, 64, 73, 72
  //   FP4:  columns 4, 0 (v = 0), 5, 1 (v = 1), 6, 2 (v = 2), 7, 3 (v = 3)
  // 2^24 last: both ones count.
  EXPECT_EQ(DotOfThree(table, WeightFormat::kBf16, {32, 1, 0}), 0x1p24f + 2);
  EXPECT_EQ(DotOfThree(table, WeightFormat::kFp8, {8, 1, 0}), 0x1p24f + 2);
  EXPECT_EQ(DotOfThree(table, WeightFormat::kFp4, {5, 4, 0}), 0x1p24f + 2);
  EXPECT_EQ(DotOfThree(table, WeightFormat::kFp4, {3, 6, 7}), 0x1p24f + 2);
  // 2^24 first (an odd column before its even one): both are lost, each to a tie to even.
  EXPECT_EQ(DotOfThree(table, WeightFormat::kBf16, {1, 0, 33}), 0x1p24f);
  EXPECT_EQ(DotOfThree(table, WeightFormat::kFp8, {1, 0, 9}), 0x1p24f);
  EXPECT_EQ(DotOfThree(table, WeightFormat::kFp4, {4, 0, 5}), 0x1p24f);
  // 2^24 in between: one is lost before it can meet the other.
  EXPECT_EQ(DotOfThree(table, WeightFormat::kBf16, {0, 1, 33}), 0x1p24f);
  // In lane 0 and lane 8, which the tree adds: the ones meet first in lane 8.
  EXPECT_EQ(DotOfThree(table, WeightFormat::kBf16, {0, 16, 17}), 0x1p24f + 2);
  EXPECT_EQ(DotOfThree(table, WeightFormat::kFp8, {0, 32, 33}), 0x1p24f + 2);
  EXPECT_EQ(DotOfThree(table, WeightFormat::kFp4, {0, 64, 68}), 0x1p24f + 2);
  // In lanes 0, 8 and 4: lane 8 joins lane 0 before lane 4 does.
  EXPECT_EQ(DotOfThree(table, WeightFormat::kBf16, {0, 16, 8}), 0x1p24f);
  // In lanes 0, 4 and 12: lane 12 joins lane 4 first.
  EXPECT_EQ(DotOfThree(table, WeightFormat::kBf16, {0, 8, 24}), 0x1p24f + 2);
}

TEST_P(DotTest, RandomProductsAreThoseOfThePage) {
  CaseInputs in(1);
  for (const int64_t k : {32, 96, 128, 160, 588, 1280}) {
    const std::vector<float> x = in.Bf16Floats(k);
    const std::vector<uint16_t> bf16 = in.Bf16(33 * k);
    ExpectByTheBook(*GetParam(), ColumnOrder::kNatural,
                    {.format = WeightFormat::kBf16, .data = bf16.data(), .n = 33, .k = k}, x);
    if (k % 32 != 0) continue;
    const std::vector<uint8_t> fp8 = in.E4M3(33 * k);
    const std::vector<uint8_t> fp4 = in.Bytes(33 * k / 2);
    const std::vector<uint8_t> scales = in.Scales(33 * k / 32, kMinScaleByte, kMaxScaleByte);
    ExpectByTheBook(*GetParam(), ColumnOrder::kFp8,
                    {.format = WeightFormat::kFp8,
                     .data = fp8.data(),
                     .scales = scales.data(),
                     .n = 33,
                     .k = k},
                    x);
    ExpectByTheBook(*GetParam(), ColumnOrder::kFp4,
                    {.format = WeightFormat::kFp4,
                     .data = fp4.data(),
                     .scales = scales.data(),
                     .n = 33,
                     .k = k},
                    x);
  }
}

TEST_P(DotTest, ProductsThatUnderflowAreStillFused) {
  // Products from 2^-240 to 2^80: those below 2^-126 have no fp32 value of their own.
  CaseInputs in(2);
  for (int round = 0; round < 20; ++round) {
    const std::vector<float> x = in.WideBf16Floats(256);
    std::vector<uint16_t> w;
    for (const float value : in.WideBf16Floats(64 * 256)) w.push_back(FloatToBf16(value));
    ExpectByTheBook(*GetParam(), ColumnOrder::kNatural,
                    {.format = WeightFormat::kBf16, .data = w.data(), .n = 64, .k = 256}, x);
  }
}

TEST_P(DotTest, AZeroCodeHasNoSign) {
  // Odd products underflow to -0, which a product of -0 would leave as it is.
  const FlushDenormals flush;
  const auto zero = FloatToBf16(0x1p-40f);
  const auto tiny = FloatToBf16(-0x1p-40f);
  std::vector<uint16_t> x;
  std::vector<uint8_t> fp8;
  for (int i = 0; i < 64; ++i) {
    x.insert(x.end(), {zero, tiny});
    fp8.insert(fp8.end(), {0x80, 0x01});
  }
  // In FP4 order the even columns of a packed row are those of nibbles 0 to 3 of even words.
  std::vector<uint8_t> fp4;
  for (int i = 0; i < 16; ++i) fp4.insert(fp4.end(), {0x88, 0x88, 0x11, 0x11});
  const std::vector<uint8_t> scales(4, kMinScaleByte);
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    float y = 1;
    GetParam()->matmul({.x = x.data(),
                        .order = static_cast<ColumnOrder>(format),
                        .x_index = nullptr,
                        .m = 1,
                        .w = {.format = format,
                              .data = format == WeightFormat::kFp8 ? fp8.data() : fp4.data(),
                              .scales = scales.data(),
                              .n = 1,
                              .k = 128},
                        .y = &y,
                        .y_stride = 1,
                        .round = false},
                       0, 1);
    EXPECT_TRUE(SameBits(y, 0.0f)) << GetParam()->name;
  }
}

TEST_P(DotTest, ASumKeepsWhatAProductAloneWouldLose) {
  std::vector<float> x(32, 0.0f);
  std::vector<uint16_t> w(32, 0);
  const WeightView view{.format = WeightFormat::kBf16, .data = w.data(), .n = 1, .k = 32};
  // 2^-126 + 1.5 * 2^-(126+e): the second product is below the smallest normal number.
  x[1] = x[0] = 0x1p-60f;
  w[1] = FloatToBf16(0x1p-66f);
  for (int e = -2; e <= 24; ++e) {
    w[0] = FloatToBf16(std::ldexp(1.5f, -66 - e));
    ExpectByTheBook(*GetParam(), ColumnOrder::kNatural, view, x);
  }
  // -2^127 + 1.5 * 1.5 * 2^(124+e): at e = 3 the second product exceeds the largest number, the sum
  // does not.
  x[1] = 0x1p64f;
  w[1] = FloatToBf16(-0x1p63f);
  x[0] = 0x1.8p64f;
  for (int e = 0; e <= 4; ++e) {
    w[0] = FloatToBf16(std::ldexp(1.5f, 60 + e));
    ExpectByTheBook(*GetParam(), ColumnOrder::kNatural, view, x);
  }
}

TEST_P(DotTest, ARowDoesNotDependOnTheRowsBesideIt) {
  constexpr int64_t kRows = 40;
  constexpr int64_t kDim = 160;
  constexpr int64_t kOutputs = 50;
  const FlushDenormals flush;
  CaseInputs in(3);
  const std::vector<float> x = in.Floats(kRows * kDim);
  const std::vector<uint8_t> codes = in.Bytes(kOutputs * kDim / 2);
  const std::vector<uint8_t> scales = in.Scales(kOutputs * kDim / 32);
  const int64_t stride = PackedStride(ColumnOrder::kFp4, kDim);
  std::vector<uint16_t> packed(kRows * static_cast<size_t>(stride));
  const KernelTable& table = *GetParam();
  table.pack({.x = x.data(),
              .x_stride = kDim,
              .k = kDim,
              .quantize = true,
              .order = ColumnOrder::kFp4,
              .out = packed.data()},
             0, kRows);
  MatmulParams params{.x = packed.data(),
                      .order = ColumnOrder::kFp4,
                      .x_index = nullptr,
                      .m = kRows,
                      .w = {.format = WeightFormat::kFp4,
                            .data = codes.data(),
                            .scales = scales.data(),
                            .n = kOutputs,
                            .k = kDim},
                      .y = nullptr,
                      .y_stride = kOutputs,
                      .round = true};
  std::vector<float> together(kRows * kOutputs);
  params.y = together.data();
  table.matmul(params, 0, kOutputs);
  for (int64_t rows : {1, 2, 7}) {
    std::vector<float> apart(kRows * kOutputs);
    for (int64_t first = 0; first < kRows; first += rows) {
      params.x = packed.data() + first * stride;
      params.m = std::min(rows, kRows - first);
      params.y = apart.data() + first * kOutputs;
      table.matmul(params, 0, kOutputs);
    }
    EXPECT_EQ(apart, together) << rows << " rows at once";
  }
}

}  // namespace
}  // namespace deepinfer
