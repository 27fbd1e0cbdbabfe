#include "verify/golden_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace deepinfer {
namespace {

// Below this a choice is a near-tie that two correct implementations may decide differently.
constexpr float kNearTie = 1e-5f;

std::span<const int32_t> Ints(const TensorView& tensor) {
  return {reinterpret_cast<const int32_t*>(tensor.bytes.data()),
          tensor.bytes.size() / sizeof(int32_t)};
}

bool IsSelection(std::string_view name) { return name.starts_with("sel_layers."); }
bool IsExpertSet(std::string_view name) { return name.starts_with("gate_idx_layers."); }

// Layer at the end of "sel_layers.7".
int LayerOf(std::string_view name) {
  int layer = 0;
  for (const char c : name.substr(name.rfind('.') + 1)) layer = layer * 10 + (c - '0');
  return layer;
}

// The members of a row, sorted, without the -1 that fill it up.
std::vector<int32_t> SetOf(std::span<const int32_t> row) {
  std::vector<int32_t> set(row.begin(), row.end());
  std::erase(set, -1);
  std::ranges::sort(set);
  return set;
}

// Rows whose sets differ.
std::vector<int64_t> DifferingRows(const TensorView& golden, const TracedInts& mine) {
  const auto rows = golden.shape[0];
  const auto golden_cols = static_cast<size_t>(golden.shape[1]);
  const auto cols = static_cast<size_t>(mine.cols);
  std::vector<int64_t> differing;
  for (int64_t row = 0; row < rows; ++row) {
    const auto at = static_cast<size_t>(row);
    if (SetOf(Ints(golden).subspan(at * golden_cols, golden_cols)) !=
        SetOf(std::span(mine.values).subspan(at * cols, cols))) {
      differing.push_back(row);
    }
  }
  return differing;
}

// The golden candidate mask marks entries; only those a row can see count.
bool SameCandidates(const TensorView& golden, const TracedInts& blocks, int block_size,
                    int64_t row) {
  const auto width = golden.shape[1];
  std::vector<bool> mine(static_cast<size_t>(width), false);
  for (int64_t i = 0; i < blocks.cols; ++i) {
    const int64_t block = blocks.values[static_cast<size_t>(row * blocks.cols + i)];
    for (int64_t e = block * block_size; block >= 0 && e < (block + 1) * block_size; ++e) {
      if (e < width) mine[static_cast<size_t>(e)] = true;
    }
  }
  for (int64_t e = 0; e <= std::min(row, width - 1); ++e) {
    const bool expected = golden.bytes[static_cast<size_t>(row * width + e)] != std::byte{0};
    if (mine[static_cast<size_t>(e)] != expected) return false;
  }
  return true;
}

void CompareFloats(const std::string& name, const TensorView& golden, const TracedFloats& mine,
                   double tolerance, GoldenLine& line) {
  const std::span<const float> expected = Floats(golden);
  if (expected.size() != mine.values.size()) {
    return Differs(line, fmt::format("{}: found {} values, expected {}", name, mine.values.size(),
                                     expected.size()));
  }
  double scale = 0;
  for (const float value : expected) scale = std::max(scale, std::abs(static_cast<double>(value)));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(mine.values[i]) - expected[i]) / scale;
    line.max_error = std::max(line.max_error, error);
    if (!(error <= tolerance)) {
      return Differs(
          line, fmt::format("{} row {} column {}: found {}, expected {}", name,
                            i / static_cast<size_t>(mine.cols), i % static_cast<size_t>(mine.cols),
                            mine.values[i], expected[i]));
    }
  }
}

// Weights of the same experts, whatever the order of two that are equally good.
void CompareGateWeights(const GoldenTraces& golden, const TraceRecorder& recorded, int layer,
                        double tolerance, GoldenLine& line) {
  const std::string suffix = fmt::format("_layers.{}", layer);
  const TensorView& ids = *golden.Find("gate_idx" + suffix);
  const std::span<const float> weights = Floats(*golden.Find("gate_w" + suffix));
  const TracedInts& mine_ids = recorded.ints().at("gate_idx" + suffix);
  const TracedFloats& mine = recorded.floats().at("gate_w" + suffix);
  const std::vector<float> margins = golden.MarginOf("gate_idx" + suffix);
  const auto cols = static_cast<size_t>(mine.cols);
  for (size_t i = 0; i < weights.size(); ++i) {
    const size_t row = i / cols;
    if (!margins.empty() && margins[row] <= kNearTie) continue;
    for (size_t j = row * cols; j < (row + 1) * cols; ++j) {
      if (mine_ids.values[j] != Ints(ids)[i]) continue;
      const double error = std::abs(static_cast<double>(mine.values[j]) - weights[i]);
      line.max_error = std::max(line.max_error, error);
      if (!(error <= tolerance)) {
        Differs(line, fmt::format("gate weight of layer {} row {}: found {}, expected {}", layer,
                                  row, mine.values[j], weights[i]));
      }
    }
  }
}

void CompareSets(const GoldenTraces& golden, const std::string& name, const TensorView& expected,
                 const TracedInts& mine, GoldenLine& line) {
  const std::vector<float> margins = golden.MarginOf(name);
  for (const int64_t row : DifferingRows(expected, mine)) {
    if (!margins.empty() && margins[static_cast<size_t>(row)] <= kNearTie) continue;
    return Differs(line, fmt::format("{} row {}: another set", name, row));
  }
}

// Golden trace names of a case, without the tag.
std::vector<std::string> TraceNames(const GoldenTraces& golden) {
  const std::string head = golden.tag + ".trace.";
  std::vector<std::string> names;
  for (const auto& [name, view] : golden.tensors.tensors()) {
    if (name.starts_with(head)) names.push_back(name.substr(head.size()));
  }
  return names;
}

void CompareCandidates(const GoldenTraces& golden, const TensorView& expected,
                       const TraceRecorder& recorded, GoldenLine& line) {
  const TracedInts& blocks = recorded.ints().at("candidate_blocks");
  const std::vector<float> margins = golden.MarginOf("candidate_mask");
  for (int64_t row = 0; row < expected.shape[0]; ++row) {
    if (!margins.empty() && margins[static_cast<size_t>(row)] <= kNearTie) continue;
    if (SameCandidates(expected, blocks, golden.config.candidate_block_size, row)) continue;
    return Differs(line, fmt::format("candidate blocks row {}: another set", row));
  }
}

}  // namespace

void Differs(GoldenLine& line, std::string what) {
  line.ok = false;
  if (line.first.empty()) line.first = std::move(what);
}

std::vector<float> GoldenTraces::MarginOf(const std::string& name) const {
  const auto read = [&](const std::string& margin) {
    const TensorView* tensor = tensors.Find(tag + ".margin." + margin);
    if (tensor == nullptr) return std::vector<float>();
    const std::span<const float> values = Floats(*tensor);
    return std::vector<float>(values.begin(), values.end());
  };
  if (!IsSelection(name)) return read(name);
  // A Reuse layer repeats the choice of its source; a restricted one also depends on the
  // candidates.
  const int source = config.IndexSourceOf(LayerOf(name));
  std::vector<float> margins = read(fmt::format("sel_layers.{}", source));
  if (config.candidate_source_layer < 0 || source <= config.candidate_source_layer) return margins;
  const std::vector<float> candidates = read("candidate_mask");
  for (size_t i = 0; i < std::min(margins.size(), candidates.size()); ++i) {
    margins[i] = std::min(margins[i], candidates[i]);
  }
  return margins;
}

void CompareTraces(const GoldenTraces& golden, const TraceRecorder& recorded, double tolerance,
                   GoldenLine& line) {
  for (const std::string& name : TraceNames(golden)) {
    const TensorView& expected = *golden.Find(name);
    if (name == "candidate_mask") {
      CompareCandidates(golden, expected, recorded, line);
    } else if (name.starts_with("gate_w_layers.")) {
      CompareGateWeights(golden, recorded, LayerOf(name), tolerance, line);
    } else if (const auto floats = recorded.floats().find(name);
               floats != recorded.floats().end()) {
      CompareFloats(name, expected, floats->second, tolerance, line);
    } else if (const auto ints = recorded.ints().find(name); ints != recorded.ints().end()) {
      CompareSets(golden, name, expected, ints->second, line);
    } else {
      Differs(line, fmt::format("{}: not traced", name));
    }
  }
}

DifferenceCount CountDifferences(const GoldenTraces& golden, const TraceRecorder& recorded,
                                 GoldenLine& line) {
  DifferenceCount count;
  for (int layer = 0; layer < golden.config.num_layers; ++layer) {
    for (const char* suffix : {"", ".attn", ".ffn"}) {
      const std::string name = fmt::format("layers.{}{}", layer, suffix);
      const TensorView* expected = golden.Find(name);
      if (expected == nullptr) continue;
      const std::vector<float>& mine = recorded.floats().at(name).values;
      const std::span<const float> values = Floats(*expected);
      count.values += static_cast<int64_t>(values.size());
      for (size_t i = 0; i < values.size(); ++i) count.differing_values += values[i] != mine[i];
    }
  }
  for (const std::string& name : TraceNames(golden)) {
    const auto mine = recorded.ints().find(name);
    if (mine == recorded.ints().end()) continue;
    const TensorView& expected = *golden.Find(name);
    const auto differing = static_cast<int64_t>(DifferingRows(expected, mine->second).size());
    if (!IsSelection(name) && !IsExpertSet(name)) {
      if (differing > 0) Differs(line, fmt::format("{}: {} rows differ", name, differing));
      continue;
    }
    count.selections += expected.shape[0];
    count.differing_selections += differing;
  }
  if (count.ShareOfValues() > kMaxDifferingValues) {
    Differs(line, fmt::format("{:.1f} % of the values differ", 100 * count.ShareOfValues()));
  }
  if (count.ShareOfSelections() > kMaxDifferingSelections) {
    Differs(line, fmt::format("{} of {} selections differ", count.differing_selections,
                              count.selections));
  }
  return count;
}

}  // namespace deepinfer
