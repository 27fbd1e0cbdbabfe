#include "kernels/select.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "kernels/isa_choice.h"
#include "kernels/isa_tables.h"
#include "kernels/kernels.h"

namespace deepinfer {

namespace {

std::vector<const KernelTable*> FindTables() {
  std::vector<const KernelTable*> tables;
#if defined(__x86_64__)
  const Isa best = BestIsa(DetectCpuFeatures());
  if (best >= Isa::kAvx512) {
    static const KernelTable avx512 = Avx512Kernels();
    tables.push_back(&avx512);
  }
  if (best >= Isa::kAvx2) {
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

std::string_view SlowerPathNote() {
#if defined(__x86_64__)
  static const std::string note = FallbackNote(DetectCpuFeatures());
  return note;
#else
  return "";
#endif
}

}  // namespace deepinfer
