// Which part of two sequence states differs.  Private to verify.
#pragma once

#include <string>

#include "kv/sequence_state.h"

namespace deepinfer {

// "window row 37 of layer 3, byte 12: found 0x41, expected 0x40".  Looks at what a later step can
// see, as Serialize does; "bytes outside rows and entries" when all of that is equal.
std::string DescribeStateDifference(const SequenceState& found, const SequenceState& expected);

}  // namespace deepinfer
