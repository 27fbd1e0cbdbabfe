#include "kernels/vector/table.h"

#include "kernels/avx2/avx2.h"
#include "kernels/avx2/lanes.h"
#include "kernels/isa_tables.h"

namespace deepinfer {

KernelTable Avx2Kernels() {
  KernelTable table = vector::TableOf<avx2::Lanes>("avx2");
  table.pack = avx2::Pack;
  table.matmul = avx2::Matmul;
  table.attention = avx2::Attention;
  return table;
}

}  // namespace deepinfer
