// Kernels for AVX2 with FMA that have a form of their own; the others are those of kernels/vector.
#pragma once

#include "kernels/kernels.h"

namespace deepinfer::avx2 {

void Pack(const PackParams& p, int64_t begin, int64_t end);
void Matmul(const MatmulParams& p, int64_t begin, int64_t end);
void Attention(const AttentionParams& p, int64_t begin, int64_t end);

}  // namespace deepinfer::avx2
