// Index scores and selections.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/kernel_cases/case_parts.h"

namespace deepinfer {
namespace {

// Scale bytes of queries and keys.
enum class IndexScales {
  kOrdinary,
  kAny,       // all below 2^0
  kTinyKeys,  // the smallest ones of keys, which count as zero or not, and huge ones of queries
  kTinyQuery,
};
constexpr const char* kIndexScaleNames[] = {"", " any scales", " tiny keys", " tiny query"};

struct IndexShape {
  int64_t heads, dim, entries;
  IndexScales scales;
};

// Writes scale bytes of [low, low + 4] into a row.
void SetScales(CaseInputs& in, int64_t dim, int64_t low, std::byte* row) {
  for (int64_t g = 0; g < dim / 32; ++g) {
    row[dim / 2 + g] = static_cast<std::byte>(low + in.Below(5));
  }
}

CaseOutput RunIndexScores(const CaseRunner& runner, RowFormat format, const IndexShape& s) {
  CaseInputs in(static_cast<uint64_t>(s.dim));
  std::vector<std::byte> query = EncodedRows(in, format, s.heads, s.dim);
  const auto keys = MakeBlockRows(in, format, s.dim, s.entries);
  if (s.scales == IndexScales::kTinyKeys || s.scales == IndexScales::kTinyQuery) {
    const bool tiny_keys = s.scales == IndexScales::kTinyKeys;
    constexpr int64_t kHuge = 250;
    const int64_t row_bytes = RowBytes(format, s.dim);
    for (int64_t h = 0; h < s.heads; ++h) {
      SetScales(in, s.dim, tiny_keys ? kHuge : 0, query.data() + h * row_bytes);
    }
    for (int64_t i = 0; i < s.entries; ++i) {
      std::byte* row = keys->table[static_cast<size_t>(i / keys->view.entries_per_block)] +
                       keys->view.offset + i % keys->view.entries_per_block * row_bytes;
      SetScales(in, s.dim, tiny_keys ? 0 : kHuge, row);
    }
  }
  if (s.scales == IndexScales::kAny) {  // below 2^0 together, so that products stay finite
    for (std::byte& byte : query) byte = static_cast<std::byte>(in.Below(128));
    for (std::byte& byte : keys->bytes) byte = static_cast<std::byte>(in.Below(128));
  }
  const std::vector<float> weights = in.Bf16Floats(s.heads);
  auto scores = Output(s.entries);
  Run(runner, &KernelTable::index_scores, nullptr,
      IndexScoresParams{.query = query.data(),
                        .weights = weights.data(),
                        .heads = s.heads,
                        .dim = s.dim,
                        .format = format,
                        .keys = keys->view,
                        .scores = scores.data()},
      s.entries);
  return Collect(scores);
}

enum class Scores { kTied, kExtreme, kAscending, kDescending, kEqual, kSteps, kUpToZero };

// Ascending in a few steps, so that many are as good as the worst that is kept; up to zero: the
// best half are zeros of both signs and subnormal numbers, which count as zero.
std::vector<float> MakeSteps(CaseInputs& in, std::vector<float> scores, Scores kind) {
  std::sort(scores.begin(), scores.end());
  for (float& score : scores) {
    score = std::round(score * 4) / 4;
    if (kind == Scores::kSteps || score < 0) continue;
    const float tiny = in.Below(2) == 0 ? 0.0f : 1e-40f;
    score = in.Below(2) == 0 ? tiny : -tiny;
  }
  return scores;
}

std::vector<float> MakeScores(CaseInputs& in, int64_t count, Scores kind) {
  if (kind == Scores::kExtreme) return in.ExtremeFloats(count, 128);
  std::vector<float> scores = in.Floats(count, 2);
  if (kind == Scores::kAscending) std::sort(scores.begin(), scores.end());
  if (kind == Scores::kSteps || kind == Scores::kUpToZero) return MakeSteps(in, scores, kind);
  if (kind == Scores::kDescending) std::sort(scores.rbegin(), scores.rend());
  if (kind == Scores::kEqual) std::fill(scores.begin(), scores.end(), -1.5f);
  if (kind != Scores::kTied) return scores;
  for (float& score : scores) {  // with zeros of both signs, and some excluded
    score = std::round(score);
    if (in.Below(9) == 0) score = -kInfinity;
  }
  return scores;
}

// Both kernels work on one row; there is no axis to split.
CaseOutput RunSelection(const CaseRunner& runner, int64_t count, int top_k, Scores kind) {
  CaseInputs in(static_cast<uint64_t>(count));
  const std::vector<float> scores = MakeScores(in, count, kind);
  const FlushDenormals flush;
  std::vector<int32_t> order(scores.size());
  std::vector<float> block_scores(scores.size());
  auto selected = Output<int32_t>(top_k);
  auto blocks = Output<int32_t>(top_k);
  std::vector<int32_t> counts(2);
  std::vector<float> margins(2);
  runner.table.select_top_k({.scores = scores.data(),
                             .num_scores = count,
                             .top_k = top_k,
                             .selected = selected.data(),
                             .num_selected = counts.data(),
                             .order = order.data(),
                             .margin = margins.data()});
  runner.table.candidate_blocks({.scores = scores.data(),
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

}  // namespace

void AddSelectionCases(std::vector<KernelCase>* cases) {
  constexpr IndexScales kOrdinary = IndexScales::kOrdinary;
  constexpr IndexShape kShapes[] = {{5, 32, 70, kOrdinary},
                                    {1, 96, 1, kOrdinary},
                                    {32, 128, 33, kOrdinary},
                                    {17, 160, 16, kOrdinary},
                                    {3, 544, 47, kOrdinary},
                                    {6, 128, 70, IndexScales::kAny},
                                    {4, 128, 70, IndexScales::kTinyKeys},
                                    {4, 128, 70, IndexScales::kTinyQuery}};
  for (const IndexShape& s : kShapes) {
    for (const RowFormat format : {RowFormat::kF32, RowFormat::kFp4E8M0}) {
      if (s.scales != kOrdinary && format == RowFormat::kF32) continue;
      cases->push_back({fmt::format("index_scores {} {}x{} of {}{}", NameOf(format), s.heads, s.dim,
                                    s.entries, kIndexScaleNames[static_cast<int>(s.scales)]),
                        [=](const CaseRunner& r) { return RunIndexScores(r, format, s); }});
    }
  }
  for (const int64_t count : {1, 7, 64, 1000, 20011}) {
    for (const int top_k : {1, 5, 512}) {
      for (const Scores kind :
           {Scores::kTied, Scores::kExtreme, Scores::kAscending, Scores::kDescending,
            Scores::kEqual, Scores::kSteps, Scores::kUpToZero}) {
        cases->push_back(
            {fmt::format("selection of {} from {}, kind {}", top_k, count, static_cast<int>(kind)),
             [=](const CaseRunner& r) { return RunSelection(r, count, top_k, kind); }});
      }
    }
  }
}

}  // namespace deepinfer
