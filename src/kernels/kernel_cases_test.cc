#include "kernels/kernel_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "kernels/exec_context.h"
#include "kernels/select.h"
#include "tensor/bf16.h"
#include "tensor/row_codec.h"

namespace deepinfer {

uint32_t CaseInputs::Bits() {
  // SplitMix64 (Steele, Lea, Flood, 2014).
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return static_cast<uint32_t>((z ^ z >> 31) >> 32);
}

std::vector<float> CaseInputs::Floats(int64_t count, float scale) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) {
    // The sum of four uniforms in (-1, 1) has variance 4/3.
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += (static_cast<double>(Bits()) + 0.5) * 0x1p-31 - 1;
    value = static_cast<float>(sum * 0.866) * scale;
  }
  return out;
}

std::vector<float> CaseInputs::Bf16Floats(int64_t count, float scale) {
  std::vector<float> out = Floats(count, scale);
  for (float& value : out) value = RoundToBf16(value);
  return out;
}

std::vector<uint16_t> CaseInputs::Bf16(int64_t count, float scale) {
  std::vector<uint16_t> out;
  for (const float value : Floats(count, scale)) out.push_back(FloatToBf16(value));
  return out;
}

std::vector<float> CaseInputs::WideBf16Floats(int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) {
    const uint32_t exponent = 7 + static_cast<uint32_t>(Below(161));
    value = Bf16ToFloat(static_cast<uint16_t>((Bits() & 0x8000) | exponent << 7 | (Bits() & 0x7F)));
    if (Below(16) == 0) value = 0;
  }
  return out;
}

std::vector<uint8_t> CaseInputs::Bytes(int64_t count) {
  std::vector<uint8_t> out(static_cast<size_t>(count));
  for (uint8_t& value : out) value = static_cast<uint8_t>(Bits());
  return out;
}

std::vector<uint8_t> CaseInputs::E4M3(int64_t count) {
  std::vector<uint8_t> out = Bytes(count);
  for (uint8_t& code : out) {
    if ((code & 0x7F) == 0x7F) code = 0;
  }
  return out;
}

std::vector<uint8_t> CaseInputs::Scales(int64_t count, int low, int high) {
  std::vector<uint8_t> out(static_cast<size_t>(count));
  for (uint8_t& scale : out) scale = static_cast<uint8_t>(low + Below(high - low + 1));
  return out;
}

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
void Append(const std::vector<T>& values, std::vector<std::byte>* out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  out->insert(out->end(), bytes, bytes + values.size() * sizeof(T));
}

// Outputs start as a pattern, so that a value that was not written shows.
template <typename T = float>
std::vector<T> Output(int64_t count) {
  std::vector<T> out(static_cast<size_t>(count));
  std::memset(out.data(), 0x5A, out.size() * sizeof(T));
  return out;
}

template <typename Params>
void Run(void (*kernel)(const Params&, int64_t, int64_t), const Params& params, int64_t count,
         int64_t grain) {
  const FlushDenormals flush;
  for (int64_t begin = 0; begin < count; begin += grain) {
    kernel(params, begin, std::min(begin + grain, count));
  }
}

template <typename... Vectors>
std::vector<std::byte> Collect(const Vectors&... outputs) {
  std::vector<std::byte> out;
  (Append(outputs, &out), ...);
  return out;
}

const char* NameOf(ColumnOrder order) {
  constexpr const char* kNames[] = {"f32", "bf16", "fp8", "fp4"};
  return kNames[static_cast<int>(order)];
}

const char* NameOf(RowFormat format) {
  constexpr const char* kNames[] = {"f32", "fp8_e8m0", "fp4_e8m0", "fp4_e4m3"};
  return kNames[static_cast<int>(format)];
}

// ---- packing and products
// ------------------------------------------------------------------------

std::vector<std::byte> RunPack(const KernelTable& table, int64_t grain, ColumnOrder order,
                               int64_t k, bool quantize) {
  constexpr int64_t kRows = 5;
  CaseInputs in(static_cast<uint64_t>(k));
  std::vector<float> x = in.Floats(kRows * (k + 3));
  for (int64_t i = 0; i < k + 3; ++i) x[static_cast<size_t>(i)] *= 1e-6f;
  auto out = Output<uint16_t>(kRows * PackedStride(order, k));
  Run(table.pack,
      PackParams{.x = x.data(),
                 .x_stride = k + 3,
                 .k = k,
                 .quantize = quantize,
                 .order = order,
                 .out = out.data()},
      kRows, grain);
  return Collect(out);
}

void AddPackCases(std::vector<KernelCase>* cases) {
  for (const ColumnOrder order : {ColumnOrder::kNatural, ColumnOrder::kFp8, ColumnOrder::kFp4}) {
    for (const int64_t k : {32, 96, 128, 160, 588, 1280}) {
      cases->push_back(
          {fmt::format("pack {} k{}", NameOf(order), k), [=](const KernelTable& t, int64_t grain) {
             return RunPack(t, grain, order, k, false);
           }});
      if (k % 32 != 0) continue;
      cases->push_back(
          {fmt::format("pack {} k{} quantized", NameOf(order), k),
           [=](const KernelTable& t, int64_t grain) { return RunPack(t, grain, order, k, true); }});
    }
  }
}

// A random weight with its storage.
struct Weight {
  std::vector<float> f32;
  std::vector<uint16_t> bf16;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
  WeightView view;
};

std::unique_ptr<Weight> MakeWeight(CaseInputs& in, WeightFormat format, int64_t n, int64_t k,
                                   bool wide) {
  auto w = std::make_unique<Weight>();
  w->view = {.format = format, .n = n, .k = k};
  const int low = wide ? 41 : 110;
  const int high = wide ? 200 : 135;
  switch (format) {
    case WeightFormat::kF32:
      w->f32 = in.Floats(n * k);
      w->view.data = w->f32.data();
      break;
    case WeightFormat::kBf16:
      w->bf16 = in.Bf16(n * k);
      w->view.data = w->bf16.data();
      if (!wide) break;
      w->f32 = in.WideBf16Floats(n * k);
      for (size_t i = 0; i < w->f32.size(); ++i) w->bf16[i] = FloatToBf16(w->f32[i]);
      break;
    case WeightFormat::kFp8:
      w->codes = in.E4M3(n * k);
      w->scales = in.Scales((n + 31) / 32 * (k / 32), low, high);
      w->view.data = w->codes.data();
      w->view.scales = w->scales.data();
      break;
    case WeightFormat::kFp4:
      w->codes = in.Bytes(n * (k / 2));
      w->scales = in.Scales(n * (k / 32), low, high);
      w->view.data = w->codes.data();
      w->view.scales = w->scales.data();
      break;
  }
  return w;
}

struct MatmulShape {
  int64_t m, n, k;
  bool wide;     // magnitudes from one end of the exponent range to the other
  bool indexed;  // rows through x_index
};

std::vector<std::byte> RunMatmul(const KernelTable& table, int64_t grain, WeightFormat format,
                                 ColumnOrder order, const MatmulShape& shape) {
  CaseInputs in(static_cast<uint64_t>(shape.k * 1000 + shape.n));
  const auto w = MakeWeight(in, format, shape.n, shape.k, shape.wide);
  const int64_t rows = shape.m + 2;
  const int64_t stride = PackedStride(order, shape.k);
  const std::vector<float> x =
      shape.wide ? in.WideBf16Floats(rows * shape.k) : in.Bf16Floats(rows * shape.k);
  std::vector<uint16_t> packed(static_cast<size_t>(rows * stride));
  if (order != ColumnOrder::kF32) {
    Run(ScalarKernels().pack,
        PackParams{.x = x.data(),
                   .x_stride = shape.k,
                   .k = shape.k,
                   .quantize = order != ColumnOrder::kNatural && !shape.wide,
                   .order = order,
                   .out = packed.data()},
        rows, rows);
  }
  std::vector<int32_t> index;
  for (int64_t i = 0; i < shape.m; ++i) index.push_back(static_cast<int32_t>(in.Below(rows)));
  std::vector<std::byte> written;
  for (const bool round : {false, true}) {
    auto y = Output(shape.m * (shape.n + 1));
    const void* rows_at = packed.data();
    if (order == ColumnOrder::kF32) rows_at = x.data();
    Run(table.matmul,
        MatmulParams{.x = rows_at,
                     .order = order,
                     .x_index = shape.indexed ? index.data() : nullptr,
                     .m = shape.m,
                     .w = w->view,
                     .y = y.data(),
                     .y_stride = shape.n + 1,
                     .round = round},
        shape.n, grain);
    Append(y, &written);
  }
  return written;
}

void AddMatmulCases(std::vector<KernelCase>* cases) {
  constexpr MatmulShape kShapes[] = {
      {1, 70, 32, false, false}, {3, 33, 96, false, true},   {1, 5, 160, true, false},
      {2, 66, 128, true, false}, {35, 40, 256, false, true}, {1, 64, 1280, false, false},
      {5, 3, 588, false, false}, {2, 9, 588, true, false},
  };
  for (const ColumnOrder order : {ColumnOrder::kNatural, ColumnOrder::kFp8, ColumnOrder::kFp4}) {
    const auto format = static_cast<WeightFormat>(order);
    for (const MatmulShape& shape : kShapes) {
      if (format != WeightFormat::kBf16 && shape.k % 32 != 0) continue;
      const std::string name = fmt::format("{} m{} n{} k{}{}", NameOf(order), shape.m, shape.n,
                                           shape.k, shape.wide ? " wide" : "");
      cases->push_back({"matmul " + name, [=](const KernelTable& table, int64_t grain) {
                          return RunMatmul(table, grain, format, order, shape);
                        }});
      cases->push_back({"matmul fp32 by " + name, [=](const KernelTable& table, int64_t grain) {
                          return RunMatmul(table, grain, format, ColumnOrder::kF32, shape);
                        }});
    }
  }
  constexpr MatmulShape kTrueFp32 = {3, 24, 588, false, true};
  cases->push_back({"matmul fp32 by f32", [=](const KernelTable& table, int64_t grain) {
                      return RunMatmul(table, grain, WeightFormat::kF32, ColumnOrder::kF32,
                                       kTrueFp32);
                    }});
}

// ---- rows
// ----------------------------------------------------------------------------------------

void AddEmbedCase(std::vector<KernelCase>* cases) {
  cases->push_back(
      {"embed", [](const KernelTable& table, int64_t grain) {
         constexpr int64_t kDim = 35;
         CaseInputs in(1);
         const std::vector<uint16_t> vocabulary = in.Bf16(7 * kDim);
         const std::vector<uint16_t> image = in.Bf16(kDim);
         const std::vector<int32_t> ids = {6, 0, 3, 3};
         const std::vector<const uint16_t*> rows = {nullptr, image.data(), nullptr, nullptr};
         auto out = Output(4 * 4 * kDim);
         Run(table.embed,
             EmbedParams{.table = vocabulary.data(),
                         .ids = ids.data(),
                         .override_rows = rows.data(),
                         .dim = kDim,
                         .num_streams = 4,
                         .out = out.data()},
             4, grain);
         return Collect(out);
       }});
}

void AddNormCases(std::vector<KernelCase>* cases) {
  for (const int64_t dim : {32, 96, 588, 1285}) {
    for (const bool round : {false, true}) {
      const auto run = [=](const KernelTable& table, int64_t grain) {
        constexpr int64_t kRows = 4;
        CaseInputs in(static_cast<uint64_t>(dim));
        std::vector<float> x;
        for (const float scale : {1.0f, 1e-12f, 200.0f, 0.0f}) {
          const std::vector<float> row = in.Bf16Floats(dim + 1, scale);
          x.insert(x.end(), row.begin(), row.end());
        }
        const std::vector<uint16_t> weight = in.Bf16(dim);
        auto y = Output(kRows * dim);
        Run(table.rms_norm,
            RmsNormParams{.x = x.data(),
                          .x_stride = dim + 1,
                          .weight = weight.data(),
                          .dim = dim,
                          .eps = 1e-20f,
                          .round = round,
                          .y = y.data()},
            kRows, grain);
        return Collect(y);
      };
      cases->push_back({fmt::format("rms_norm {}{}", dim, round ? " round" : ""), run});
    }
  }
}

std::vector<std::byte> RunRope(const KernelTable& table, int64_t grain, bool inverse, bool round) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kHeads = 5;
  constexpr int64_t kDim = 48;
  constexpr int64_t kRopeDim = 20;
  CaseInputs in(2);
  std::vector<float> x = in.Bf16Floats(kRows * kHeads * kDim);
  const std::vector<float> cos = in.Floats(kRows * kRopeDim / 2, 0.4f);
  const std::vector<float> sin = in.Floats(kRows * kRopeDim / 2, 0.4f);
  Run(table.rope,
      RopeParams{.x = x.data(),
                 .heads = kHeads,
                 .dim = kDim,
                 .rope_dim = kRopeDim,
                 .cos = cos.data(),
                 .sin = sin.data(),
                 .inverse = inverse,
                 .round = round},
      kRows, grain);
  return Collect(x);
}

std::vector<std::byte> RunStoreRows(const KernelTable& table, int64_t grain, RowFormat format,
                                    int64_t dim) {
  constexpr int64_t kRows = 6;
  CaseInputs in(static_cast<uint64_t>(dim));
  std::vector<float> x;
  for (const float scale : {1.0f, 1e-3f, 300.0f, 1e-6f, 0.0f, 1e-36f}) {
    const std::vector<float> row = in.Bf16Floats(dim + 2, scale);
    x.insert(x.end(), row.begin(), row.end());
  }
  auto rows = Output<std::byte>(kRows * RowBytes(format, dim));
  std::vector<std::byte*> out;
  for (int64_t i = 0; i < kRows; ++i) out.push_back(rows.data() + i * RowBytes(format, dim));
  Run(table.store_rows,
      StoreRowsParams{
          .x = x.data(), .x_stride = dim + 2, .dim = dim, .format = format, .out = out.data()},
      kRows, grain);
  return rows;
}

void AddRowCases(std::vector<KernelCase>* cases) {
  for (const bool inverse : {false, true}) {
    for (const bool round : {false, true}) {
      cases->push_back(
          {fmt::format("rope{}{}", inverse ? " inverse" : "", round ? " round" : ""),
           [=](const KernelTable& t, int64_t grain) { return RunRope(t, grain, inverse, round); }});
    }
  }
  for (const RowFormat format :
       {RowFormat::kF32, RowFormat::kFp8E8M0, RowFormat::kFp4E8M0, RowFormat::kFp4E4M3}) {
    for (const int64_t dim : {32, 96, 128, 512}) {
      cases->push_back({fmt::format("store_rows {} {}", NameOf(format), dim),
                        [=](const KernelTable& t, int64_t grain) {
                          return RunStoreRows(t, grain, format, dim);
                        }});
    }
  }
  cases->push_back({"scale", [](const KernelTable& table, int64_t grain) {
                      CaseInputs in(3);
                      std::vector<float> x = in.Floats(1003);
                      Run(table.scale,
                          ScaleParams{.x = x.data(), .factor = 0.015625f, .round = true}, 1003,
                          grain);
                      return Collect(x);
                    }});
  cases->push_back(
      {"add_rows", [](const KernelTable& table, int64_t grain) {
         constexpr int64_t kDim = 37;
         CaseInputs in(4);
         const std::vector<float> x = in.Floats(3 * kDim);
         const std::vector<int32_t> index = {4, 0, 2};
         std::vector<float> y = in.Floats(5 * kDim);
         Run(table.add_rows,
             AddRowsParams{.x = x.data(), .index = index.data(), .dim = kDim, .y = y.data()}, 3,
             grain);
         return Collect(y);
       }});
  cases->push_back(
      {"decode_fp8_rows", [](const KernelTable& table, int64_t grain) {
         constexpr int64_t kDim = 96;
         CaseInputs in(5);
         const std::vector<uint8_t> codes = in.E4M3(4 * kDim);
         const std::vector<uint8_t> scales = in.Scales(4 * kDim / 32, 41, 200);
         auto y = Output(4 * kDim);
         Run(table.decode_fp8_rows,
             DecodeFp8RowsParams{
                 .codes = codes.data(), .scales = scales.data(), .dim = kDim, .y = y.data()},
             4, grain);
         return Collect(y);
       }});
}

// ---- hyper-connections, pooling, n-gram gate
// -----------------------------------------------------

struct StreamShape {
  int num_streams;
  int64_t dim;
  bool round;
};

std::vector<std::byte> RunStreams(const KernelTable& table, int64_t grain, const StreamShape& s) {
  constexpr int64_t kRows = 3;
  const int streams = s.num_streams;
  CaseInputs in(static_cast<uint64_t>(s.dim));
  std::vector<float> h = in.Bf16Floats(kRows * streams * s.dim);
  const std::vector<float> raw = in.Floats(kRows * streams * (2 + streams), 3);
  const std::vector<float> scale = in.Floats(3);
  const std::vector<float> base = in.Floats(streams * (2 + streams));
  auto pre = Output(kRows * streams);
  auto post = Output(kRows * streams);
  auto comb = Output(kRows * streams * streams);
  Run(table.hc_mixes,
      HcMixesParams{.h = h.data(),
                    .raw = raw.data(),
                    .scale = scale.data(),
                    .base = base.data(),
                    .num_streams = streams,
                    .dim = s.dim,
                    .rms_eps = 1e-20f,
                    .hc_eps = 1e-6f,
                    .sinkhorn_iters = 20,
                    .pre = pre.data(),
                    .post = post.data(),
                    .comb = comb.data()},
      kRows, grain);
  auto y = Output(kRows * s.dim);
  Run(table.hc_pre,
      HcPreParams{.h = h.data(),
                  .pre = pre.data(),
                  .num_streams = streams,
                  .dim = s.dim,
                  .round = s.round,
                  .y = y.data()},
      kRows, grain);
  Run(table.hc_post,
      HcPostParams{.y = y.data(),
                   .post = post.data(),
                   .comb = comb.data(),
                   .num_streams = streams,
                   .dim = s.dim,
                   .round = s.round,
                   .h = h.data()},
      kRows, grain);
  auto mean = Output(kRows * (s.dim + 1));
  Run(table.mean_streams,
      MeanStreamsParams{.h = h.data(),
                        .num_streams = streams,
                        .dim = s.dim,
                        .round = s.round,
                        .y = mean.data(),
                        .y_stride = s.dim + 1},
      kRows, grain);
  return Collect(pre, post, comb, y, h, mean);
}

std::vector<std::byte> RunNgramGate(const KernelTable& table, int64_t grain, const StreamShape& s) {
  constexpr int64_t kRows = 3;
  CaseInputs in(6);
  const std::vector<float> kv = in.Bf16Floats(kRows * (s.num_streams + 1) * s.dim);
  const std::vector<uint16_t> q_weight = in.Bf16(s.num_streams * s.dim);
  const std::vector<uint16_t> k_weight = in.Bf16(s.num_streams * s.dim);
  const std::vector<uint8_t> is_image = {0, 1, 0};
  std::vector<float> h = in.Bf16Floats(kRows * s.num_streams * s.dim);
  Run(table.ngram_gate,
      NgramGateParams{.kv = kv.data(),
                      .q_weight = q_weight.data(),
                      .k_weight = k_weight.data(),
                      .is_image = is_image.data(),
                      .num_streams = s.num_streams,
                      .dim = s.dim,
                      .eps = 1e-20f,
                      .round = s.round,
                      .h = h.data()},
      kRows, grain);
  return Collect(h);
}

std::vector<std::byte> RunPoolGroups(const KernelTable& table, int64_t grain, int ratio,
                                     bool round) {
  constexpr int64_t kEntries = 3;
  constexpr int64_t kDim = 45;
  CaseInputs in(7);
  const std::vector<float> values = in.Floats(kEntries * ratio * 2 * kDim, 4);
  std::vector<const float*> ug;
  for (int64_t i = 0; i < kEntries * ratio; ++i) ug.push_back(values.data() + i * 2 * kDim);
  auto y = Output(kEntries * kDim);
  Run(table.pool_groups,
      PoolGroupsParams{.ug = ug.data(), .ratio = ratio, .dim = kDim, .round = round, .y = y.data()},
      kEntries, grain);
  return Collect(y);
}

void AddStreamCases(std::vector<KernelCase>* cases) {
  constexpr StreamShape kShapes[] = {
      {4, 32, true}, {4, 96, false}, {4, 1285, true}, {2, 37, true}, {8, 40, true}};
  for (const StreamShape& s : kShapes) {
    const std::string name =
        fmt::format("{} streams of {}{}", s.num_streams, s.dim, s.round ? " round" : "");
    cases->push_back({"hyper-connections " + name, [=](const KernelTable& t, int64_t grain) {
                        return RunStreams(t, grain, s);
                      }});
    cases->push_back({"ngram_gate " + name, [=](const KernelTable& t, int64_t grain) {
                        return RunNgramGate(t, grain, s);
                      }});
  }
  for (const int ratio : {1, 2, 9}) {
    for (const bool round : {false, true}) {
      cases->push_back({fmt::format("pool_groups {}{}", ratio, round ? " round" : ""),
                        [=](const KernelTable& t, int64_t grain) {
                          return RunPoolGroups(t, grain, ratio, round);
                        }});
    }
  }
}

// ---- selection
// -----------------------------------------------------------------------------------

// `count` encoded rows.
std::vector<std::byte> EncodedRows(CaseInputs& in, RowFormat format, int64_t count, int64_t dim) {
  std::vector<std::byte> out(static_cast<size_t>(count * RowBytes(format, dim)));
  const FlushDenormals flush;
  for (int64_t i = 0; i < count; ++i) {
    EncodeRow(format, in.Bf16Floats(dim), out.data() + i * RowBytes(format, dim));
  }
  return out;
}

// Rows in blocks of `per_block`, each block with other bytes in front.
struct BlockRows {
  std::vector<std::byte> bytes;
  std::vector<std::byte*> table;
  BlockRowsView view;
};

std::unique_ptr<BlockRows> MakeBlockRows(CaseInputs& in, RowFormat format, int64_t dim,
                                         int64_t count) {
  constexpr int64_t kPerBlock = 16;
  constexpr int64_t kOffset = 32;
  const int64_t row_bytes = RowBytes(format, dim);
  const int64_t blocks = (count + kPerBlock - 1) / kPerBlock;
  const int64_t block_bytes = kOffset + kPerBlock * row_bytes;
  auto rows = std::make_unique<BlockRows>();
  rows->bytes.resize(static_cast<size_t>(blocks * block_bytes));
  for (int64_t b = 0; b < blocks; ++b) {
    std::byte* base = rows->bytes.data() + (blocks - 1 - b) * block_bytes;
    const std::vector<std::byte> encoded = EncodedRows(in, format, kPerBlock, dim);
    std::copy(encoded.begin(), encoded.end(), base + kOffset);
    rows->table.push_back(base);
  }
  rows->view = {.blocks = rows->table.data(),
                .offset = kOffset,
                .entries_per_block = kPerBlock,
                .row_bytes = static_cast<int32_t>(row_bytes)};
  return rows;
}

std::vector<std::byte> RunIndexScores(const KernelTable& table, int64_t grain, RowFormat format,
                                      int64_t dim) {
  constexpr int64_t kHeads = 5;
  constexpr int64_t kEntries = 70;
  CaseInputs in(static_cast<uint64_t>(dim));
  const std::vector<std::byte> query = EncodedRows(in, format, kHeads, dim);
  const auto keys = MakeBlockRows(in, format, dim, kEntries);
  const std::vector<float> weights = in.Bf16Floats(kHeads);
  auto scores = Output(kEntries);
  Run(table.index_scores,
      IndexScoresParams{.query = query.data(),
                        .weights = weights.data(),
                        .heads = kHeads,
                        .dim = dim,
                        .format = format,
                        .keys = keys->view,
                        .scores = scores.data()},
      kEntries, grain);
  return Collect(scores);
}

// Scores with many ties and some excluded entries.
std::vector<float> TiedScores(CaseInputs& in, int64_t count) {
  std::vector<float> scores = in.Floats(count, 2);
  for (float& score : scores) {
    score = std::round(score);
    if (in.Below(9) == 0) score = -kInfinity;
  }
  return scores;
}

std::vector<std::byte> RunSelection(const KernelTable& table, int64_t count, int top_k) {
  CaseInputs in(static_cast<uint64_t>(count));
  const std::vector<float> scores = TiedScores(in, count);
  std::vector<int32_t> order(scores.size());
  std::vector<float> block_scores(scores.size());
  auto selected = Output<int32_t>(top_k);
  auto blocks = Output<int32_t>(top_k);
  std::vector<int32_t> counts(2);
  std::vector<float> margins(2);
  table.select_top_k({.scores = scores.data(),
                      .num_scores = count,
                      .top_k = top_k,
                      .selected = selected.data(),
                      .num_selected = counts.data(),
                      .order = order.data(),
                      .margin = margins.data()});
  table.candidate_blocks({.scores = scores.data(),
                          .num_scores = count,
                          .block_size = 8,
                          .top_blocks = top_k,
                          .blocks = blocks.data(),
                          .num_blocks = &counts[1],
                          .block_scores = block_scores.data(),
                          .order = order.data(),
                          .margin = &margins[1]});
  selected.resize(static_cast<size_t>(counts[0]));
  blocks.resize(static_cast<size_t>(counts[1]));
  return Collect(selected, blocks, counts, margins);
}

void AddSelectionCases(std::vector<KernelCase>* cases) {
  for (const RowFormat format : {RowFormat::kF32, RowFormat::kFp4E8M0}) {
    for (const int64_t dim : {32, 96, 128}) {
      cases->push_back({fmt::format("index_scores {} {}", NameOf(format), dim),
                        [=](const KernelTable& t, int64_t grain) {
                          return RunIndexScores(t, grain, format, dim);
                        }});
    }
  }
  for (const int64_t count : {1, 7, 64, 1000}) {
    for (const int top_k : {1, 5, 512}) {
      cases->push_back(
          {fmt::format("selection of {} from {}", top_k, count),
           [=](const KernelTable& t, int64_t) { return RunSelection(t, count, top_k); }});
    }
  }
}

// ---- attention and experts
// -----------------------------------------------------------------------

struct AttentionShape {
  int64_t heads, dim;
  int window_size;
  float q_scale;  // large: probabilities that underflow
  bool round;
};

std::vector<std::byte> RunAttention(const KernelTable& table, int64_t grain,
                                    const AttentionShape& s) {
  constexpr int64_t kRows = 5;
  constexpr int32_t kEntries = 90;
  const RowFormat window_format = s.round ? RowFormat::kFp8E8M0 : RowFormat::kF32;
  const RowFormat rows_format = s.round ? RowFormat::kFp4E4M3 : RowFormat::kF32;
  const auto row_bytes = static_cast<int32_t>(RowBytes(window_format, s.dim));
  const int32_t ring_rows = s.window_size + 16;
  CaseInputs in(static_cast<uint64_t>(s.dim + s.window_size));
  const std::vector<std::byte> ring = EncodedRows(in, window_format, ring_rows, s.dim);
  const std::vector<std::byte> fresh = EncodedRows(in, window_format, kRows, s.dim);
  const auto entries = MakeBlockRows(in, rows_format, s.dim, kEntries);
  // Row 0 and 1 near the start of a sequence, 2 with a floor, 3 and 4 anywhere.
  constexpr int64_t kFirst[] = {0, 2, 1000, 700, 5000};
  constexpr int32_t kSelected[] = {0, 1, 63, 64, 90};
  std::vector<std::vector<int32_t>> selected(kRows);
  std::vector<AttentionRow> rows;
  for (int64_t i = 0; i < kRows; ++i) {
    auto& list = selected[static_cast<size_t>(i)];
    for (int32_t j = kEntries - kSelected[i]; j < kEntries; ++j) list.push_back(j);
    const int64_t begin = kFirst[i];
    rows.push_back({.window = {.ring = ring.data(),
                               .fresh = fresh.data(),
                               .fresh_begin = begin,
                               .floor = i == 2 ? begin - 3 : 0,
                               .ring_rows = ring_rows,
                               .row_bytes = row_bytes},
                    .pos = begin + i,
                    .rows = entries->view,
                    .selected = list.data(),
                    .num_selected = kSelected[i]});
  }
  const std::vector<float> q = in.Bf16Floats(kRows * s.heads * s.dim, s.q_scale);
  const std::vector<float> sink = in.Floats(s.heads);
  auto o = Output(kRows * s.heads * s.dim);
  Run(table.attention,
      AttentionParams{.q = q.data(),
                      .rows = rows.data(),
                      .sink = sink.data(),
                      .heads = s.heads,
                      .dim = s.dim,
                      .window_size = s.window_size,
                      .scale = 1 / std::sqrt(static_cast<float>(s.dim)),
                      .window_format = window_format,
                      .rows_format = rows_format,
                      .round = s.round,
                      .o = o.data()},
      kRows, grain);
  return Collect(o);
}

std::vector<std::byte> RunRoute(const KernelTable& table, int64_t grain, int experts, int top_k) {
  constexpr int64_t kRows = 4;
  CaseInputs in(static_cast<uint64_t>(experts));
  std::vector<float> logits = in.Floats(kRows * experts, 8);
  for (float& logit : logits) logit = std::round(logit);  // ties
  const std::vector<float> bias(static_cast<size_t>(experts), 0.125f);
  const std::vector<float> bias_image = in.Floats(experts);
  const std::vector<uint8_t> is_image = {0, 1, 0, 0};
  auto chosen = Output<int32_t>(kRows * top_k);
  auto weights = Output(kRows * top_k);
  auto margins = Output(kRows);
  Run(table.route,
      RouteParams{.logits = logits.data(),
                  .bias = bias.data(),
                  .bias_image = bias_image.data(),
                  .is_image = is_image.data(),
                  .num_experts = experts,
                  .top_k = top_k,
                  .scale = 1.5f,
                  .experts = chosen.data(),
                  .weights = weights.data(),
                  .margins = margins.data()},
      kRows, grain);
  return Collect(chosen, weights, margins);
}

std::vector<std::byte> RunSwiglu(const KernelTable& table, int64_t grain, int64_t dim,
                                 bool weighted) {
  constexpr int64_t kRows = 3;
  CaseInputs in(static_cast<uint64_t>(dim));
  const std::vector<float> gate = in.Bf16Floats(kRows * dim, 8);
  const std::vector<float> up = in.Bf16Floats(kRows * dim, 8);
  const std::vector<float> row_weight = in.Floats(kRows);
  std::vector<std::byte> written;
  for (const bool round : {false, true}) {
    auto y = Output(kRows * dim);
    Run(table.swiglu,
        SwigluParams{.gate = gate.data(),
                     .up = up.data(),
                     .row_weight = weighted ? row_weight.data() : nullptr,
                     .dim = dim,
                     .limit = 10,
                     .round = round,
                     .y = y.data()},
        kRows, grain);
    Append(y, &written);
  }
  return written;
}

void AddAttentionCases(std::vector<KernelCase>* cases) {
  constexpr AttentionShape kShapes[] = {{3, 32, 8, 1, true},    {2, 96, 128, 1, true},
                                        {2, 512, 128, 3, true}, {3, 64, 100, 60, true},
                                        {3, 32, 8, 1, false},   {2, 96, 128, 20, false}};
  for (const AttentionShape& s : kShapes) {
    cases->push_back(
        {fmt::format("attention {}x{} window {} scale {}{}", s.heads, s.dim, s.window_size,
                     s.q_scale, s.round ? " round" : ""),
         [=](const KernelTable& t, int64_t grain) { return RunAttention(t, grain, s); }});
  }
}

void AddExpertCases(std::vector<KernelCase>* cases) {
  for (const auto& [experts, top_k] : {std::pair{1, 1}, {12, 4}, {37, 37}, {384, 6}}) {
    cases->push_back({fmt::format("route {} of {}", top_k, experts),
                      [experts = experts, top_k = top_k](const KernelTable& t, int64_t grain) {
                        return RunRoute(t, grain, experts, top_k);
                      }});
  }
  for (const int64_t dim : {32, 75, 2304}) {
    for (const bool weighted : {false, true}) {
      cases->push_back({fmt::format("swiglu {}{}", dim, weighted ? " weighted" : ""),
                        [=](const KernelTable& t, int64_t grain) {
                          return RunSwiglu(t, grain, dim, weighted);
                        }});
    }
  }
}

}  // namespace

std::vector<KernelCase> KernelCases() {
  std::vector<KernelCase> cases;
  AddPackCases(&cases);
  AddMatmulCases(&cases);
  AddEmbedCase(&cases);
  AddNormCases(&cases);
  AddRowCases(&cases);
  AddStreamCases(&cases);
  AddSelectionCases(&cases);
  AddAttentionCases(&cases);
  AddExpertCases(&cases);
  return cases;
}

namespace {

constexpr int64_t kWhole = int64_t{1} << 40;

TEST(KernelCasesTest, EveryIsaGivesTheScalarBits) {
  for (const KernelCase& item : KernelCases()) {
    const std::vector<std::byte> expected = item.run(ScalarKernels(), kWhole);
    EXPECT_FALSE(expected.empty()) << item.name;
    for (const KernelTable* table : SupportedKernels()) {
      EXPECT_EQ(item.run(*table, kWhole), expected) << table->name << ": " << item.name;
    }
  }
}

TEST(KernelCasesTest, HowTheWorkIsSplitDoesNotChangeABit) {
  for (const KernelTable* table : SupportedKernels()) {
    for (const KernelCase& item : KernelCases()) {
      const std::vector<std::byte> expected = item.run(*table, kWhole);
      for (const int64_t grain : {1, 3, 32}) {
        EXPECT_EQ(item.run(*table, grain), expected)
            << table->name << ": " << item.name << ", grain " << grain;
      }
    }
  }
}

}  // namespace
}  // namespace deepinfer
