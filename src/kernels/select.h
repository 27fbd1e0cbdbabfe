// Which instruction sets this program has kernels for, and which one runs.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"

namespace deepinfer {

struct KernelTable;

// The definition of truth; runs everywhere.
const KernelTable& ScalarKernels();

// All tables that this machine can run, best first; the last one is scalar.
std::span<const KernelTable* const> SupportedKernels();

// The table that `forced` names (the value of DEEPINFER_ISA), or the best one when it is empty.
// An unknown or unsupported name is an error that lists what there is.
Result<const KernelTable*> SelectKernels(std::string_view forced);

// One line for the log when this machine has a part of a faster instruction set but not all that
// its kernels need: what is missing, and what runs instead.  Empty otherwise.
std::string_view SlowerPathNote();

}  // namespace deepinfer
