// What the cases of this folder are made of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/exec_context.h"
#include "kernels/kernels.h"
#include "kernels/ops.h"
#include "tests/kernel_cases/kernel_cases.h"

namespace deepinfer {

void AddPackCases(std::vector<KernelCase>* cases);
void AddMatmulCases(std::vector<KernelCase>* cases);
void AddRowCases(std::vector<KernelCase>* cases);
void AddStreamCases(std::vector<KernelCase>* cases);
void AddSelectionCases(std::vector<KernelCase>* cases);
void AddAttentionCases(std::vector<KernelCase>* cases);
void AddExpertCases(std::vector<KernelCase>* cases);

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
void Append(const std::vector<T>& values, CaseOutput* out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  out->bytes.insert(out->bytes.end(), bytes, bytes + values.size() * sizeof(T));
  if constexpr (std::is_same_v<T, float>) {
    out->nans += std::count_if(values.begin(), values.end(), [](float x) { return x != x; });
  }
}

template <typename... Vectors>
CaseOutput Collect(const Vectors&... outputs) {
  CaseOutput out;
  (Append(outputs, &out), ...);
  return out;
}

// Outputs start as a pattern, so that a value that was not written shows.
template <typename T = float>
std::vector<T> Output(int64_t count) {
  std::vector<T> out(static_cast<size_t>(count));
  std::memset(out.data(), 0x5A, out.size() * sizeof(T));
  return out;
}

// Runs a kernel of the runner's table over `count` rows (or what else its axis is), or the op that
// stands for it; a kernel without one is split among the context's threads.
template <typename Params>
void Run(const CaseRunner& runner,
         void (*KernelTable::*kernel)(const Params&, int64_t begin, int64_t end),
         std::type_identity_t<void (*)(ExecContext&, const Params&, int64_t)> op,
         const std::type_identity_t<Params>& params, int64_t count) {
  const auto function = runner.table.*kernel;
  if (runner.context != nullptr) {
    if (op != nullptr) return op(*runner.context, params, count);
    return runner.context->ParallelFor(
        count, 3, [&](int64_t begin, int64_t end) { function(params, begin, end); });
  }
  const FlushDenormals flush;
  for (int64_t begin = 0; begin < count; begin += runner.grain) {
    function(params, begin, std::min(begin + runner.grain, count));
  }
}

const char* NameOf(ColumnOrder order);
const char* NameOf(RowFormat format);

// `values` rows of `dim`, encoded.
std::vector<std::byte> EncodedRows(CaseInputs& in, RowFormat format, int64_t count, int64_t dim);

// Rows in blocks of 16, each block with other bytes in front.
struct BlockRows {
  std::vector<std::byte> bytes;
  std::vector<std::byte*> table;
  BlockRowsView view;
};
std::unique_ptr<BlockRows> MakeBlockRows(CaseInputs& in, RowFormat format, int64_t dim,
                                         int64_t count);

}  // namespace deepinfer
