#include "kernels/select.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace deepinfer {

std::span<const KernelTable* const> SupportedKernels() {
  static const std::vector<const KernelTable*> tables = {&ScalarKernels()};
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
