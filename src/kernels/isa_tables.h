// What the instruction sets beside scalar offer.  Private to select.cc, isa_choice.cc and peaks.cc;
// each is built into the program only for the processors that may have it.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/peaks.h"

namespace deepinfer {

#if defined(__x86_64__)
KernelTable Avx2Kernels();
KernelTable Avx512Kernels();

PeakLoops Avx2Peaks();
PeakLoops Avx512Peaks();

// Tries vdpbf16ps on `vectors` vectors of 16 seeded lanes, with operands of every exponent, zeros,
// subnormals and infinite results: how many lanes are not fma(even, fma(odd, acc)), NaN being equal
// to NaN.  Needs all of AVX-512 that the kernels need, and denormals flushed.
int64_t CountBf16DotMismatches(uint64_t seed, int64_t vectors);
#endif

}  // namespace deepinfer
