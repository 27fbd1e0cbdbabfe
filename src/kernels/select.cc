#include "kernels/select.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "kernels/isa_tables.h"
#include "kernels/kernels.h"

namespace deepinfer {

namespace {

#if defined(__x86_64__)
bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
         __builtin_cpu_supports("avx512bf16");
}
#endif

std::vector<const KernelTable*> FindTables() {
  std::vector<const KernelTable*> tables;
#if defined(__x86_64__)
  if (HasAvx512()) {
    static const KernelTable avx512 = Avx512Kernels();
    tables.push_back(&avx512);
  }
  if (HasAvx2()) {
    static const KernelTable avx2 = Avx2Kernels();
    tables.push_back(&avx2);
  }
#endif
  tables.push_back(&ScalarKernels());
  return tables;
}

}  // namespace

std::span<const KernelTable* const> SupportedKernels() {
  static const std::vector<const KernelTable*> tables = FindTables();
  return tables;
}

Result<const KernelTable*> SelectKernels(std::string_view forced) {
  if (forced.empty()) return SupportedKernels().front();
  std::string supported;
  for (const KernelTable* table : SupportedKernels()) {
    if (forced == table->name) return table;
    supported += supported.empty() ? table->name : fmt::format(", {}", table->name);
  }
  return InvalidArgument(fmt::format(
      "DEEPINFER_ISA: found '{}', expected one that this machine runs: {}", forced, supported));
}

}  // namespace deepinfer
