// Kernels for AVX-512 with F, BW, VL, VBMI and BF16.  Ops that are not here run the scalar code,
// which gives the same bits.
#pragma once

#include "kernels/kernels.h"

namespace deepinfer::avx512 {

void Pack(const PackParams& p, int64_t begin, int64_t end);
void Matmul(const MatmulParams& p, int64_t begin, int64_t end);
void Attention(const AttentionParams& p, int64_t begin, int64_t end);

}  // namespace deepinfer::avx512
