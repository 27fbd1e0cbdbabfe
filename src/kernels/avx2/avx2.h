// Kernels for AVX2 with FMA.  Ops that are not here run the scalar code, which gives the same bits.
#pragma once

#include "kernels/kernels.h"

namespace deepinfer::avx2 {

void Matmul(const MatmulParams& p, int64_t begin, int64_t end);

}  // namespace deepinfer::avx2
