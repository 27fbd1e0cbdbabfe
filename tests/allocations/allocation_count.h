// Counts what operator new is asked for, on all threads.  Test code only.
#pragma once

#include <cstdint>

namespace deepinfer {

// Calls of operator new, in any form, since the program began.
int64_t AllocationCount();

}  // namespace deepinfer
