// Packing and products.
#include <fmt/format.h>

#include <memory>

#include "kernels/select.h"
#include "tensor/bf16.h"
#include "tests/kernel_cases/case_parts.h"

namespace deepinfer {
namespace {

struct PackShape {
  int64_t rows, k;
  bool quantize;
  bool extreme;
};

CaseOutput RunPack(const CaseRunner& runner, ColumnOrder order, const PackShape& s) {
  CaseInputs in(static_cast<uint64_t>(s.k));
  const int64_t stride = s.k + 3;
  std::vector<float> x =
      s.extreme ? in.ExtremeFloats(s.rows * stride + 1, 128) : in.Floats(s.rows * stride + 1);
  if (!s.extreme) {
    for (int64_t i = 0; i < stride; ++i) x[static_cast<size_t>(i)] *= 1e-6f;
  }
  auto out = Output<uint16_t>(s.rows * PackedStride(order, s.k));
  Run(runner, &KernelTable::pack, Pack,
      PackParams{.x = x.data() + 1,
                 .x_stride = stride,
                 .k = s.k,
                 .quantize = s.quantize,
                 .order = order,
                 .out = out.data()},
      s.rows);
  return Collect(out);
}

}  // namespace

void AddPackCases(std::vector<KernelCase>* cases) {
  constexpr PackShape kShapes[] = {
      {1, 32, false, false},  {2, 96, false, true},   {5, 128, false, false}, {6, 160, false, true},
      {7, 588, false, false}, {33, 588, false, true}, {3, 1280, false, true}, {1, 32, true, true},
      {2, 96, true, false},   {5, 128, true, true},   {6, 160, true, false},  {33, 160, true, true},
      {7, 1280, true, false},
  };
  for (const ColumnOrder order : {ColumnOrder::kNatural, ColumnOrder::kFp8, ColumnOrder::kFp4}) {
    for (const PackShape& s : kShapes) {
      cases->push_back({fmt::format("pack {} {}x{}{}{}", NameOf(order), s.rows, s.k,
                                    s.quantize ? " quantized" : "", s.extreme ? " extreme" : ""),
                        [=](const CaseRunner& r) { return RunPack(r, order, s); }});
    }
  }
}

namespace {

void MatmulOp(ExecContext& context, const MatmulParams& params, int64_t /*outputs*/) {
  Matmul(context, params);
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

CaseOutput RunMatmul(const CaseRunner& runner, WeightFormat format, ColumnOrder order,
                     const MatmulShape& shape) {
  CaseInputs in(static_cast<uint64_t>(shape.k * 1000 + shape.n));
  const auto w = MakeWeight(in, format, shape.n, shape.k, shape.wide);
  const int64_t rows = shape.m + 2;
  const int64_t stride = PackedStride(order, shape.k);
  const std::vector<float> x =
      shape.wide ? in.WideBf16Floats(rows * shape.k) : in.Bf16Floats(rows * shape.k);
  std::vector<uint16_t> packed(static_cast<size_t>(rows * stride));
  if (order != ColumnOrder::kF32) {
    Run({.table = ScalarKernels()}, &KernelTable::pack, nullptr,
        PackParams{.x = x.data(),
                   .x_stride = shape.k,
                   .k = shape.k,
                   .quantize = order != ColumnOrder::kNatural && !shape.wide,
                   .order = order,
                   .out = packed.data()},
        rows);
  }
  std::vector<int32_t> index;
  for (int64_t i = 0; i < shape.m; ++i) index.push_back(static_cast<int32_t>(in.Below(rows)));
  CaseOutput written;
  for (const bool round : {false, true}) {
    auto y = Output(shape.m * (shape.n + 1));
    const void* rows_at = packed.data();
    if (order == ColumnOrder::kF32) rows_at = x.data();
    Run(runner, &KernelTable::matmul, MatmulOp,
        MatmulParams{.x = rows_at,
                     .order = order,
                     .x_index = shape.indexed ? index.data() : nullptr,
                     .m = shape.m,
                     .w = w->view,
                     .y = y.data(),
                     .y_stride = shape.n + 1,
                     .round = round},
        shape.n);
    Append(y, &written);
  }
  return written;
}

}  // namespace

void AddMatmulCases(std::vector<KernelCase>* cases) {
  constexpr MatmulShape kShapes[] = {
      {1, 70, 32, false, false},  {3, 33, 96, false, true},    {1, 5, 160, true, false},
      {2, 66, 128, true, false},  {35, 40, 256, false, true},  {1, 64, 1280, false, false},
      {5, 3, 588, false, false},  {2, 9, 588, true, false},    {33, 17, 96, false, false},
      {6, 67, 2336, false, true}, {13, 67, 2336, false, true}, {4, 9, 160, true, true},
      {101, 3, 96, false, true},
  };
  for (const ColumnOrder order : {ColumnOrder::kNatural, ColumnOrder::kFp8, ColumnOrder::kFp4}) {
    const auto format = static_cast<WeightFormat>(order);
    for (const MatmulShape& shape : kShapes) {
      if (format != WeightFormat::kBf16 && shape.k % 32 != 0) continue;
      const std::string name = fmt::format("{} m{} n{} k{}{}", NameOf(order), shape.m, shape.n,
                                           shape.k, shape.wide ? " wide" : "");
      cases->push_back({"matmul " + name, [=](const CaseRunner& runner) {
                          return RunMatmul(runner, format, order, shape);
                        }});
      cases->push_back({"matmul fp32 by " + name, [=](const CaseRunner& runner) {
                          return RunMatmul(runner, format, ColumnOrder::kF32, shape);
                        }});
    }
  }
  constexpr MatmulShape kTrueFp32[] = {{3, 24, 588, false, true}, {6, 5, 43, false, false}};
  for (const MatmulShape& shape : kTrueFp32) {
    cases->push_back(
        {fmt::format("matmul fp32 by f32 m{}", shape.m), [=](const CaseRunner& runner) {
           return RunMatmul(runner, WeightFormat::kF32, ColumnOrder::kF32, shape);
         }});
  }
}

}  // namespace deepinfer
