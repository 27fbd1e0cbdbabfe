#include "kernels/avx2/avx2.h"
#include "kernels/isa_tables.h"
#include "kernels/select.h"

namespace deepinfer {

KernelTable Avx2Kernels() {
  KernelTable table = ScalarKernels();
  table.name = "avx2";
  table.matmul = avx2::Matmul;
  return table;
}

}  // namespace deepinfer
