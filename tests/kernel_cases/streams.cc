// Hyper-connections, pooling, n-gram gate.
#include <fmt/format.h>

#include <string>

#include "tests/kernel_cases/case_parts.h"

namespace deepinfer {
namespace {

struct StreamShape {
  int64_t rows;
  int num_streams;
  int64_t dim;
  bool round;
  bool extreme;  // up to 2^60: products of two stay finite
};

std::vector<float> StreamValues(CaseInputs& in, int64_t count, const StreamShape& s) {
  return s.extreme ? in.ExtremeBf16Floats(count, 60) : in.Bf16Floats(count);
}

CaseOutput RunStreams(const CaseRunner& runner, const StreamShape& s) {
  const int streams = s.num_streams;
  CaseInputs in(static_cast<uint64_t>(s.dim));
  std::vector<float> h = StreamValues(in, s.rows * streams * s.dim, s);
  const std::vector<float> raw = in.Floats(s.rows * streams * (2 + streams), 3);
  const std::vector<float> scale = in.Floats(3);
  const std::vector<float> base = in.Floats(streams * (2 + streams));
  auto pre = Output(s.rows * streams);
  auto post = Output(s.rows * streams);
  auto comb = Output(s.rows * streams * streams);
  Run(runner, &KernelTable::hc_mixes, HcMixes,
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
      s.rows);
  auto y = Output(s.rows * s.dim);
  Run(runner, &KernelTable::hc_pre, HcPre,
      HcPreParams{.h = h.data(),
                  .pre = pre.data(),
                  .num_streams = streams,
                  .dim = s.dim,
                  .round = s.round,
                  .y = y.data()},
      s.rows);
  Run(runner, &KernelTable::hc_post, HcPost,
      HcPostParams{.y = y.data(),
                   .post = post.data(),
                   .comb = comb.data(),
                   .num_streams = streams,
                   .dim = s.dim,
                   .round = s.round,
                   .h = h.data()},
      s.rows);
  auto mean = Output(s.rows * (s.dim + 1));
  Run(runner, &KernelTable::mean_streams, MeanStreams,
      MeanStreamsParams{.h = h.data(),
                        .num_streams = streams,
                        .dim = s.dim,
                        .round = s.round,
                        .y = mean.data(),
                        .y_stride = s.dim + 1},
      s.rows);
  return Collect(pre, post, comb, y, h, mean);
}

CaseOutput RunNgramGate(const CaseRunner& runner, const StreamShape& s) {
  CaseInputs in(6);
  const std::vector<float> kv = StreamValues(in, s.rows * (s.num_streams + 1) * s.dim, s);
  const std::vector<uint16_t> q_weight = in.Bf16(s.num_streams * s.dim);
  const std::vector<uint16_t> k_weight = in.Bf16(s.num_streams * s.dim);
  std::vector<uint8_t> is_image(static_cast<size_t>(s.rows));
  for (uint8_t& image : is_image) image = in.Below(3) == 0 ? 1 : 0;
  std::vector<float> h = StreamValues(in, s.rows * s.num_streams * s.dim, s);
  Run(runner, &KernelTable::ngram_gate, NgramGate,
      NgramGateParams{.kv = kv.data(),
                      .q_weight = q_weight.data(),
                      .k_weight = k_weight.data(),
                      .is_image = is_image.data(),
                      .num_streams = s.num_streams,
                      .dim = s.dim,
                      .eps = 1e-20f,
                      .round = s.round,
                      .h = h.data()},
      s.rows);
  return Collect(h);
}

constexpr int64_t kPoolEntries = 6;
constexpr int64_t kPoolDim = 45;

// [entries, ratio][u, gate][dim]
std::vector<float> PoolValues(CaseInputs& in, int ratio, bool extreme) {
  const int64_t count = kPoolEntries * ratio * 2 * kPoolDim;
  std::vector<float> values = extreme ? in.ExtremeFloats(count, 120) : in.Floats(count, 4);
  // Moderate gates for every other token, so that huge values of several tokens meet.
  for (int64_t row = 0; row < kPoolEntries * ratio; row += 2) {
    const std::vector<float> gates = in.Floats(kPoolDim);
    std::copy(gates.begin(), gates.end(), values.begin() + (2 * row + 1) * kPoolDim);
  }
  return values;
}

// Equal gates; tokens 0..3 are huge and taken back by tokens 8..11, so that what another token adds
// to their lanes in between is lost.
std::vector<float> CancellingPoolValues(CaseInputs& in, int ratio) {
  std::vector<float> values = PoolValues(in, ratio, false);
  for (int64_t row = 0; row < kPoolEntries * ratio; ++row) {
    float* u = values.data() + row * 2 * kPoolDim;
    const int64_t token = row % ratio;
    std::fill_n(u + kPoolDim, kPoolDim, 1.0f);
    if (token < 4) std::fill_n(u, kPoolDim, 0x1p70f);
    if (token >= 8 && token < 12) std::fill_n(u, kPoolDim, -0x1p70f);
  }
  return values;
}

CaseOutput RunPoolGroups(const CaseRunner& runner, int ratio, const std::vector<float>& values) {
  std::vector<const float*> ug;
  for (int64_t i = 0; i < kPoolEntries * ratio; ++i) {
    ug.push_back(values.data() + i * 2 * kPoolDim);
  }
  CaseOutput written;
  for (const bool round : {false, true}) {
    auto y = Output(kPoolEntries * kPoolDim);
    Run(runner, &KernelTable::pool_groups, PoolGroups,
        PoolGroupsParams{
            .ug = ug.data(), .ratio = ratio, .dim = kPoolDim, .round = round, .y = y.data()},
        kPoolEntries);
    Append(y, &written);
  }
  return written;
}

}  // namespace

void AddStreamCases(std::vector<KernelCase>* cases) {
  constexpr StreamShape kShapes[] = {
      {3, 4, 32, true, false}, {9, 4, 96, false, false}, {3, 4, 1285, true, false},
      {1, 2, 37, true, false}, {2, 8, 40, true, false},  {33, 4, 21, true, false},
      {2, 1, 17, true, false}, {2, 3, 50, false, false}, {2, 5, 33, true, false},
      {5, 4, 77, true, true},  {2, 4, 160, false, true}, {3, 8, 31, true, true},
      {6, 1, 64, true, true},  {9, 2, 96, false, true},
  };
  for (const StreamShape& s : kShapes) {
    const std::string name = fmt::format("{}x{}x{}{}{}", s.rows, s.num_streams, s.dim,
                                         s.round ? " round" : "", s.extreme ? " extreme" : "");
    cases->push_back(
        {"hyper-connections " + name, [=](const CaseRunner& r) { return RunStreams(r, s); }});
    cases->push_back(
        {"ngram_gate " + name, [=](const CaseRunner& r) { return RunNgramGate(r, s); }});
  }
  for (const int ratio : {1, 2, 4, 9, 128}) {
    for (const bool extreme : {false, true}) {
      cases->push_back({fmt::format("pool_groups {}{}", ratio, extreme ? " extreme" : ""),
                        [=](const CaseRunner& r) {
                          CaseInputs in(7);
                          return RunPoolGroups(r, ratio, PoolValues(in, ratio, extreme));
                        }});
    }
  }
  cases->push_back({"pool_groups 20 cancelling", [](const CaseRunner& r) {
                      CaseInputs in(7);
                      return RunPoolGroups(r, 20, CancellingPoolValues(in, 20));
                    }});
}

}  // namespace deepinfer
