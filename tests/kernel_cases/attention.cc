// Attention and experts.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "tests/kernel_cases/case_parts.h"

namespace deepinfer {
namespace {

struct AttentionShape {
  int64_t heads, dim;
  int window_size;
  float q_scale;  // large: probabilities that underflow; 0: extreme queries
  bool round;
};

CaseOutput RunAttention(const CaseRunner& runner, const AttentionShape& s) {
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
  const int64_t q_count = kRows * s.heads * s.dim;
  const std::vector<float> q =
      s.q_scale == 0 ? in.ExtremeBf16Floats(q_count, 60) : in.Bf16Floats(q_count, s.q_scale);
  const std::vector<float> sink = in.Floats(s.heads);
  auto o = Output(kRows * s.heads * s.dim);
  Run(runner, &KernelTable::attention, Attend,
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
      kRows);
  return Collect(o);
}

struct RouteShape {
  int64_t rows;
  int experts, top_k;
  bool extreme;
};

CaseOutput RunRoute(const CaseRunner& runner, const RouteShape& s) {
  CaseInputs in(static_cast<uint64_t>(s.experts));
  const int64_t count = s.rows * s.experts;
  std::vector<float> logits = s.extreme ? in.ExtremeFloats(count, 120) : in.Floats(count, 8);
  if (!s.extreme) {
    for (float& logit : logits) logit = std::round(logit);  // ties
  }
  const std::vector<float> bias(static_cast<size_t>(s.experts), 0.125f);
  const std::vector<float> bias_image = in.Floats(s.experts);
  std::vector<uint8_t> is_image(static_cast<size_t>(s.rows));
  for (uint8_t& image : is_image) image = in.Below(3) == 0 ? 1 : 0;
  auto chosen = Output<int32_t>(s.rows * s.top_k);
  auto weights = Output(s.rows * s.top_k);
  auto margins = Output(s.rows);
  Run(runner, &KernelTable::route, Route,
      RouteParams{.logits = logits.data(),
                  .bias = bias.data(),
                  .bias_image = bias_image.data(),
                  .is_image = is_image.data(),
                  .num_experts = s.experts,
                  .top_k = s.top_k,
                  .scale = 1.5f,
                  .experts = chosen.data(),
                  .weights = weights.data(),
                  .margins = margins.data()},
      s.rows);
  return Collect(chosen, weights, margins);
}

struct SwigluShape {
  int64_t rows, dim;
  bool weighted;
  bool extreme;
};

CaseOutput RunSwiglu(const CaseRunner& runner, const SwigluShape& s) {
  CaseInputs in(static_cast<uint64_t>(s.dim));
  const int64_t count = s.rows * s.dim;
  const std::vector<float> gate =
      s.extreme ? in.ExtremeFloats(count, 128) : in.Bf16Floats(count, 8);
  const std::vector<float> up = s.extreme ? in.ExtremeFloats(count, 128) : in.Bf16Floats(count, 8);
  const std::vector<float> row_weight = in.Floats(s.rows);
  CaseOutput written;
  for (const bool round : {false, true}) {
    auto y = Output(count);
    Run(runner, &KernelTable::swiglu, Swiglu,
        SwigluParams{.gate = gate.data(),
                     .up = up.data(),
                     .row_weight = s.weighted ? row_weight.data() : nullptr,
                     .dim = s.dim,
                     .limit = 10,
                     .round = round,
                     .y = y.data()},
        s.rows);
    Append(y, &written);
  }
  return written;
}

}  // namespace

void AddAttentionCases(std::vector<KernelCase>* cases) {
  constexpr AttentionShape kShapes[] = {
      {3, 32, 8, 1, true},     {2, 96, 128, 1, true},  {2, 512, 128, 3, true},
      {3, 64, 100, 60, true},  {4, 32, 100, 0, true},  {7, 160, 64, 1, true},
      {1, 544, 3, 1, true},    {5, 256, 130, 0, true}, {3, 32, 8, 1, false},
      {2, 96, 128, 20, false},
  };
  for (const AttentionShape& s : kShapes) {
    cases->push_back({fmt::format("attention {}x{} window {} scale {}{}", s.heads, s.dim,
                                  s.window_size, s.q_scale, s.round ? " round" : ""),
                      [=](const CaseRunner& r) { return RunAttention(r, s); }});
  }
}

void AddExpertCases(std::vector<KernelCase>* cases) {
  constexpr RouteShape kRoutes[] = {{4, 1, 1, false},   {4, 12, 4, false},  {3, 37, 37, false},
                                    {33, 33, 5, false}, {6, 384, 6, false}, {5, 384, 8, true},
                                    {1, 17, 16, true}};
  for (const RouteShape& s : kRoutes) {
    cases->push_back({fmt::format("route {}x {} of {}{}", s.rows, s.top_k, s.experts,
                                  s.extreme ? " extreme" : ""),
                      [=](const CaseRunner& r) { return RunRoute(r, s); }});
  }
  for (const auto& [rows, dim] : {std::pair{3, 32}, {33, 75}, {1, 7}, {2, 2304}}) {
    for (const bool weighted : {false, true}) {
      for (const bool extreme : {false, true}) {
        const SwigluShape shape{rows, dim, weighted, extreme};
        cases->push_back({fmt::format("swiglu {}x{}{}{}", rows, dim, weighted ? " weighted" : "",
                                      extreme ? " extreme" : ""),
                          [=](const CaseRunner& r) { return RunSwiglu(r, shape); }});
      }
    }
  }
}

}  // namespace deepinfer
