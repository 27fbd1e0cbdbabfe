// Messages typed over one or several lines.
#pragma once

#include <string>

#include "apps/chat/line_reader.h"
#include "base/status.h"

namespace deepinfer {

// Reads one message: a line; several, each but the last ending in a backslash; or all between a
// line that starts with """ and one that ends with """.  The result is a TypedLine whose text may
// hold line feeds; Ctrl-C in the middle drops all of it.  A script that ends in the middle is
// InvalidArgument.
Result<TypedLine> ReadTypedMessage(LineReader& reader, const std::string& prompt,
                                   const std::string& initial = "");

}  // namespace deepinfer
