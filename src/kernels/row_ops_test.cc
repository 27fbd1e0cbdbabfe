// The sums of docs/formats/numerics.md section 4 as the table words them, on ops that have no
// golden of their own.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/exec_context.h"
#include "kernels/math.h"
#include "kernels/select.h"
#include "tensor/bf16.h"
#include "tests/kernel_cases/kernel_cases.h"

namespace deepinfer {
namespace {

constexpr int64_t kDim = 75;
constexpr int kStreams = 4;

// sum(...) of the page.
float SumByTheBook(const std::vector<double>& terms) {
  double lane[8] = {};
  for (size_t i = 0; i < terms.size(); ++i) lane[i % 8] += terms[i];
  for (int width = 4; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  return static_cast<float>(lane[0]);
}

float InverseRmsByTheBook(const float* x, int64_t n, float eps) {
  std::vector<double> squares;
  for (int64_t i = 0; i < n; ++i) {
    squares.push_back(static_cast<double>(x[i]) * static_cast<double>(x[i]));
  }
  const float v = SumByTheBook(squares) * (1.0f / static_cast<float>(n)) + eps;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(v)));
}

class RowOpsTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
  CaseInputs in_{23};
  const FlushDenormals flush_;
};

INSTANTIATE_TEST_SUITE_P(EveryIsa, RowOpsTest, testing::ValuesIn(SupportedKernels()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(RowOpsTest, RmsNormSumsExactSquares) {
  const std::vector<float> x = in_.Bf16Floats(kDim, 30);
  const std::vector<uint16_t> weight = in_.Bf16(kDim);
  std::vector<float> y(kDim);
  table().rms_norm({.x = x.data(),
                    .x_stride = kDim,
                    .weight = weight.data(),
                    .dim = kDim,
                    .eps = 1e-6f,
                    .round = true,
                    .y = y.data()},
                   0, 1);
  const float inverse = InverseRmsByTheBook(x.data(), kDim, 1e-6f);
  for (size_t i = 0; i < kDim; ++i) {
    EXPECT_EQ(y[i], RoundToBf16(Bf16ToFloat(weight[i]) * (x[i] * inverse)));
  }
}

TEST_P(RowOpsTest, StreamsMixThroughFp64Sums) {
  const std::vector<float> h = in_.Bf16Floats(kStreams * kDim);
  const std::vector<float> pre = in_.Floats(kStreams);
  const std::vector<float> post = in_.Floats(kStreams);
  const std::vector<float> comb = in_.Floats(kStreams * kStreams);
  std::vector<float> y(kDim);
  table().hc_pre({.h = h.data(),
                  .pre = pre.data(),
                  .num_streams = kStreams,
                  .dim = kDim,
                  .round = true,
                  .y = y.data()},
                 0, 1);
  std::vector<float> mixed = h;
  table().hc_post({.y = y.data(),
                   .post = post.data(),
                   .comb = comb.data(),
                   .num_streams = kStreams,
                   .dim = kDim,
                   .round = true,
                   .h = mixed.data()},
                  0, 1);
  for (size_t c = 0; c < kDim; ++c) {
    std::vector<double> terms;
    for (size_t j = 0; j < kStreams; ++j) {
      const float product = pre[j] * h[j * kDim + c];
      terms.push_back(static_cast<double>(product));
    }
    EXPECT_EQ(y[c], RoundToBf16(SumByTheBook(terms)));
    for (size_t j = 0; j < kStreams; ++j) {
      terms.clear();
      for (size_t i = 0; i < kStreams; ++i) {
        const float product = comb[i * kStreams + j] * h[i * kDim + c];
        terms.push_back(static_cast<double>(product));
      }
      const float fresh = post[j] * y[c];
      EXPECT_EQ(mixed[j * kDim + c], RoundToBf16(fresh + SumByTheBook(terms)));
    }
  }
}

TEST_P(RowOpsTest, PooledChannelsAreSoftmaxMixesOfTheirTokens) {
  constexpr int kRatio = 3;
  const std::vector<float> values = in_.Floats(kRatio * 2 * kDim, 3);
  std::vector<const float*> ug;
  for (int t = 0; t < kRatio; ++t) ug.push_back(values.data() + t * 2 * kDim);
  std::vector<float> y(kDim);
  table().pool_groups({.ug = ug.data(), .ratio = kRatio, .dim = kDim, .round = true, .y = y.data()},
                      0, 1);
  for (int64_t c = 0; c < kDim; ++c) {
    float highest = ug[0][kDim + c];
    for (int t = 1; t < kRatio; ++t)
      highest = std::max(highest, ug[static_cast<size_t>(t)][kDim + c]);
    std::vector<double> weights;
    for (const float* token : ug) {
      weights.push_back(static_cast<double>(PreciseExp(token[kDim + c] - highest)));
    }
    const float sum = SumByTheBook(weights);
    std::vector<double> terms;
    for (size_t t = 0; t < kRatio; ++t) {
      const float share = static_cast<float>(weights[t]) / sum;
      const float product = ug[t][c] * share;
      terms.push_back(static_cast<double>(product));
    }
    EXPECT_EQ(y[static_cast<size_t>(c)], RoundToBf16(SumByTheBook(terms)));
  }
}

TEST_P(RowOpsTest, TheNgramGateOpensByTheProductOfStreamAndKey) {
  const std::vector<float> kv = in_.Bf16Floats(2 * kDim);
  const std::vector<uint16_t> q_weight = in_.Bf16(kDim);
  const std::vector<uint16_t> k_weight = in_.Bf16(kDim);
  const std::vector<float> before = in_.Bf16Floats(kDim);
  const uint8_t is_image = 0;
  std::vector<float> h = before;
  table().ngram_gate({.kv = kv.data(),
                      .q_weight = q_weight.data(),
                      .k_weight = k_weight.data(),
                      .is_image = &is_image,
                      .num_streams = 1,
                      .dim = kDim,
                      .eps = 1e-20f,
                      .round = true,
                      .h = h.data()},
                     0, 1);
  std::vector<double> terms;
  for (size_t c = 0; c < kDim; ++c) {
    const float weight = Bf16ToFloat(q_weight[c]) * Bf16ToFloat(k_weight[c]);
    const float product = before[c] * weight;
    const float term = product * kv[c];
    terms.push_back(static_cast<double>(term));
  }
  const float norm = InverseRmsByTheBook(before.data(), kDim, 1e-20f) *
                     InverseRmsByTheBook(kv.data(), kDim, 1e-20f);
  const auto root = static_cast<float>(1.0 / std::sqrt(static_cast<double>(kDim)));
  const float normed = SumByTheBook(terms) * norm;
  const float d = normed * root;
  const float gate = PreciseSigmoid(std::copysign(std::sqrt(std::max(std::fabs(d), 1e-6f)), d));
  for (size_t c = 0; c < kDim; ++c) {
    const float added = gate * kv[kDim + c];
    EXPECT_EQ(h[c], RoundToBf16(before[c] + added));
  }
}

TEST_P(RowOpsTest, ImageRowsPassTheNgramGateUntouched) {
  const std::vector<float> kv = in_.Bf16Floats(2 * kDim);
  const std::vector<uint16_t> weight = in_.Bf16(kDim);
  const std::vector<float> before = in_.Floats(kDim);
  const uint8_t is_image = 1;
  std::vector<float> h = before;
  table().ngram_gate({.kv = kv.data(),
                      .q_weight = weight.data(),
                      .k_weight = weight.data(),
                      .is_image = &is_image,
                      .num_streams = 1,
                      .dim = kDim,
                      .eps = 1e-20f,
                      .round = true,
                      .h = h.data()},
                     0, 1);
  EXPECT_EQ(h, before);
}

TEST_P(RowOpsTest, QuantisedActivationsAreThoseOfTheWindowRows) {
  // act_quant and the window format are the same quantiser: packed operands = decoded row.
  constexpr int64_t kColumns = 96;
  const std::vector<float> x = in_.Bf16Floats(kColumns, 5);
  std::vector<uint16_t> packed(128);
  table().pack({.x = x.data(),
                .x_stride = kColumns,
                .k = kColumns,
                .quantize = true,
                .order = ColumnOrder::kNatural,
                .out = packed.data()},
               0, 1);
  std::vector<std::byte> row(RowBytes(RowFormat::kFp8E8M0, kColumns));
  std::byte* out = row.data();
  table().store_rows({.x = x.data(),
                      .x_stride = kColumns,
                      .dim = kColumns,
                      .format = RowFormat::kFp8E8M0,
                      .out = &out},
                     0, 1);
  std::vector<float> decoded(kColumns);
  table().decode_fp8_rows({.codes = reinterpret_cast<const uint8_t*>(row.data()),
                           .scales = reinterpret_cast<const uint8_t*>(row.data()) + kColumns,
                           .dim = kColumns,
                           .y = decoded.data()},
                          0, 1);
  for (size_t i = 0; i < kColumns; ++i) EXPECT_EQ(Bf16ToFloat(packed[i]), decoded[i]);
}

}  // namespace
}  // namespace deepinfer
