// What the instruction sets beside scalar offer.  Private to select.cc and peaks.cc; each is built
// into the program only for the processors that may have it.
#pragma once

#include "kernels/kernels.h"
#include "kernels/peaks.h"

namespace deepinfer {

#if defined(__x86_64__)
KernelTable Avx2Kernels();
KernelTable Avx512Kernels();

PeakLoops Avx2Peaks();
PeakLoops Avx512Peaks();
#endif

}  // namespace deepinfer
