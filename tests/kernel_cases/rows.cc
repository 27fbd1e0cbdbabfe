// Embedding, norms, rotary positions, cached rows, elementwise ops.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "tests/kernel_cases/case_parts.h"

namespace deepinfer {
namespace {

// Rows of ordinary values at several scales, or of extreme ones.
std::vector<float> RowsOf(CaseInputs& in, int64_t rows, int64_t stride, bool extreme) {
  if (extreme) return in.ExtremeFloats(rows * stride, 128);
  constexpr float kScales[] = {1.0f, 1e-12f, 200.0f, 0.0f, 1e-3f, 1e-36f};
  std::vector<float> x;
  for (int64_t i = 0; i < rows; ++i) {
    const std::vector<float> row = in.Bf16Floats(stride, kScales[i % std::ssize(kScales)]);
    x.insert(x.end(), row.begin(), row.end());
  }
  return x;
}

struct RowShape {
  int64_t rows, dim;
  bool round;
  bool extreme;
};

std::string Describe(const RowShape& s) {
  return fmt::format("{}x{}{}{}", s.rows, s.dim, s.round ? " round" : "",
                     s.extreme ? " extreme" : "");
}

void AddEmbedCase(std::vector<KernelCase>* cases) {
  cases->push_back(
      {"embed", [](const CaseRunner& runner) {
         constexpr int64_t kDim = 35;
         CaseInputs in(1);
         std::vector<uint16_t> vocabulary = in.Bf16(7 * kDim);
         vocabulary[6 * kDim] = 0x8001;  // subnormal: copied, not computed with
         const std::vector<uint16_t> image = in.Bf16(kDim);
         const std::vector<int32_t> ids = {6, 0, 3, 3};
         const std::vector<const uint16_t*> rows = {nullptr, image.data(), nullptr, nullptr};
         auto out = Output(4 * 4 * kDim);
         Run(runner, &KernelTable::embed, Embed,
             EmbedParams{.table = vocabulary.data(),
                         .ids = ids.data(),
                         .override_rows = rows.data(),
                         .dim = kDim,
                         .num_streams = 4,
                         .out = out.data()},
             4);
         return Collect(out);
       }});
}

CaseOutput RunRmsNorm(const CaseRunner& runner, const RowShape& s) {
  CaseInputs in(static_cast<uint64_t>(s.dim));
  const std::vector<float> x = RowsOf(in, s.rows, s.dim + 1, s.extreme);
  const std::vector<uint16_t> weight = in.Bf16(s.dim);
  auto y = Output(s.rows * s.dim);
  Run(runner, &KernelTable::rms_norm, RmsNorm,
      RmsNormParams{.x = x.data(),
                    .x_stride = s.dim + 1,
                    .weight = weight.data(),
                    .dim = s.dim,
                    .eps = 1e-20f,
                    .round = s.round,
                    .y = y.data()},
      s.rows);
  return Collect(y);
}

struct RopeShape {
  int64_t rows, heads, dim, rope_dim;
};

CaseOutput RunRope(const CaseRunner& runner, const RopeShape& s, bool inverse, bool extreme) {
  CaseInputs in(static_cast<uint64_t>(s.rope_dim));
  const int64_t count = s.rows * s.heads * s.dim;
  std::vector<float> x = extreme ? in.ExtremeFloats(count, 128) : in.Bf16Floats(count);
  const std::vector<float> cos = in.Floats(s.rows * s.rope_dim / 2, 0.4f);
  const std::vector<float> sin = in.Floats(s.rows * s.rope_dim / 2, 0.4f);
  CaseOutput written;
  for (const bool round : {false, true}) {
    std::vector<float> rotated = x;
    Run(runner, &KernelTable::rope, Rope,
        RopeParams{.x = rotated.data(),
                   .heads = s.heads,
                   .dim = s.dim,
                   .rope_dim = s.rope_dim,
                   .cos = cos.data(),
                   .sin = sin.data(),
                   .inverse = inverse,
                   .round = round},
        s.rows);
    Append(rotated, &written);
  }
  return written;
}

CaseOutput RunStoreRows(const CaseRunner& runner, RowFormat format, const RowShape& s) {
  CaseInputs in(static_cast<uint64_t>(s.dim));
  const std::vector<float> x = RowsOf(in, s.rows, s.dim + 2, s.extreme);
  auto rows = Output<std::byte>(s.rows * RowBytes(format, s.dim));
  std::vector<std::byte*> out;
  for (int64_t i = 0; i < s.rows; ++i) out.push_back(rows.data() + i * RowBytes(format, s.dim));
  Run(runner, &KernelTable::store_rows, StoreRows,
      StoreRowsParams{
          .x = x.data(), .x_stride = s.dim + 2, .dim = s.dim, .format = format, .out = out.data()},
      s.rows);
  return Collect(rows);
}

CaseOutput RunScale(const CaseRunner& runner, int64_t count, bool round, bool extreme) {
  CaseInputs in(3);
  std::vector<float> x = extreme ? in.ExtremeFloats(count + 1, 128) : in.Floats(count + 1);
  Run(runner, &KernelTable::scale, Scale,
      ScaleParams{.x = x.data() + 1, .factor = 0.015625f, .round = round}, count);
  return Collect(x);
}

CaseOutput RunAddRows(const CaseRunner& runner, int64_t rows, int64_t dim, bool indexed) {
  CaseInputs in(4);
  const std::vector<float> x = in.ExtremeFloats(rows * dim, 120);
  std::vector<int32_t> index;
  for (int64_t i = 0; i < rows; ++i) index.push_back(static_cast<int32_t>(2 * (rows - 1 - i)));
  std::vector<float> y = in.ExtremeFloats(2 * rows * dim, 120);
  Run(runner, &KernelTable::add_rows, AddRows,
      AddRowsParams{
          .x = x.data(), .index = indexed ? index.data() : nullptr, .dim = dim, .y = y.data()},
      rows);
  return Collect(y);
}

CaseOutput RunDecodeFp8Rows(const CaseRunner& runner, int64_t rows, int64_t dim) {
  CaseInputs in(5);
  const std::vector<uint8_t> codes = in.E4M3(rows * dim);
  const std::vector<uint8_t> scales = in.Scales(rows * dim / 32, 41, 200);
  auto y = Output(rows * dim);
  Run(runner, &KernelTable::decode_fp8_rows, DecodeFp8Rows,
      DecodeFp8RowsParams{
          .codes = codes.data(), .scales = scales.data(), .dim = dim, .y = y.data()},
      rows);
  return Collect(y);
}

void AddRopeCases(std::vector<KernelCase>* cases) {
  constexpr RopeShape kShapes[] = {
      {1, 1, 64, 64}, {3, 5, 48, 20}, {2, 64, 70, 64}, {33, 2, 34, 34}, {2, 3, 9, 2}};
  for (const RopeShape& s : kShapes) {
    for (const bool inverse : {false, true}) {
      for (const bool extreme : {false, true}) {
        cases->push_back({fmt::format("rope {}x{}x{} of {}{}{}", s.rows, s.heads, s.rope_dim, s.dim,
                                      inverse ? " inverse" : "", extreme ? " extreme" : ""),
                          [=](const CaseRunner& r) { return RunRope(r, s, inverse, extreme); }});
      }
    }
  }
}

void AddElementwiseCases(std::vector<KernelCase>* cases) {
  for (const int64_t count : {1, 15, 1003, 70000}) {
    for (const bool round : {false, true}) {
      for (const bool extreme : {false, true}) {
        cases->push_back(
            {fmt::format("scale {}{}{}", count, round ? " round" : "", extreme ? " extreme" : ""),
             [=](const CaseRunner& r) { return RunScale(r, count, round, extreme); }});
      }
    }
  }
  for (const auto& [rows, dim] : {std::pair{1, 1}, {3, 37}, {33, 64}, {5, 129}}) {
    for (const bool indexed : {false, true}) {
      cases->push_back({fmt::format("add_rows {}x{}{}", rows, dim, indexed ? " indexed" : ""),
                        [rows = rows, dim = dim, indexed](const CaseRunner& r) {
                          return RunAddRows(r, rows, dim, indexed);
                        }});
    }
  }
  for (const auto& [rows, dim] : {std::pair{1, 32}, {4, 96}, {33, 64}}) {
    cases->push_back(
        {fmt::format("decode_fp8_rows {}x{}", rows, dim),
         [rows = rows, dim = dim](const CaseRunner& r) { return RunDecodeFp8Rows(r, rows, dim); }});
  }
}

}  // namespace

void AddRowCases(std::vector<KernelCase>* cases) {
  AddEmbedCase(cases);
  AddRopeCases(cases);
  AddElementwiseCases(cases);
  for (const bool extreme : {false, true}) {
    for (const auto& [rows, dim] :
         {std::pair{1, 5}, {4, 32}, {7, 96}, {5, 588}, {33, 47}, {3, 1285}}) {
      for (const bool round : {false, true}) {
        const RowShape shape{rows, dim, round, extreme};
        cases->push_back({"rms_norm " + Describe(shape),
                          [=](const CaseRunner& r) { return RunRmsNorm(r, shape); }});
      }
    }
    for (const RowFormat format :
         {RowFormat::kF32, RowFormat::kFp8E8M0, RowFormat::kFp4E8M0, RowFormat::kFp4E4M3}) {
      for (const auto& [rows, dim] : {std::pair{6, 32}, {1, 96}, {33, 128}, {6, 512}, {2, 288}}) {
        const RowShape shape{rows, dim, false, extreme};
        cases->push_back({fmt::format("store_rows {} {}", NameOf(format), Describe(shape)),
                          [=](const CaseRunner& r) { return RunStoreRows(r, format, shape); }});
      }
    }
  }
}

}  // namespace deepinfer
