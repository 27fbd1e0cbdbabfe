// The tables of the instruction sets beside scalar.  Private to kernels/select.cc; each is built
// into the program only for the processors that may have it.
#pragma once

#include "kernels/kernels.h"

namespace deepinfer {

#if defined(__x86_64__)
KernelTable Avx2Kernels();
KernelTable Avx512Kernels();
#endif

}  // namespace deepinfer
