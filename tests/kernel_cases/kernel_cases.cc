#include "tests/kernel_cases/kernel_cases.h"

#include "tests/kernel_cases/case_parts.h"

namespace deepinfer {

std::vector<KernelCase> KernelCases() {
  std::vector<KernelCase> cases;
  AddPackCases(&cases);
  AddMatmulCases(&cases);
  AddRowCases(&cases);
  AddStreamCases(&cases);
  AddSelectionCases(&cases);
  AddAttentionCases(&cases);
  AddExpertCases(&cases);
  return cases;
}

}  // namespace deepinfer
