#include "kernels/avx512/avx512.h"
#include "kernels/isa_tables.h"
#include "kernels/select.h"

namespace deepinfer {

KernelTable Avx512Kernels() {
  KernelTable table = ScalarKernels();
  table.name = "avx512";
  table.pack = avx512::Pack;
  table.matmul = avx512::Matmul;
  table.attention = avx512::Attention;
  return table;
}

}  // namespace deepinfer
