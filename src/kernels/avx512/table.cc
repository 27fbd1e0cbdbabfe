#include "kernels/vector/table.h"

#include "kernels/avx512/avx512.h"
#include "kernels/avx512/lanes.h"
#include "kernels/isa_tables.h"

namespace deepinfer {

KernelTable Avx512Kernels() {
  KernelTable table = vector::TableOf<avx512::Lanes>("avx512");
  table.pack = avx512::Pack;
  table.matmul = avx512::Matmul;
  table.attention = avx512::Attention;
  return table;
}

}  // namespace deepinfer
