// Which checkpoint a command reads when --model is not given: the shipped nano model.
#pragma once

#include <vector>

#include "base/status.h"
#include "io/file.h"

namespace deepinfer {

// Places of the shipped model, in the order they are tried: beside the program (as unpacked, as
// installed), in the working directory, in the source tree it was built from, in the install
// prefix.
std::vector<Path> DefaultModelPlaces();

// `given` as it is, or, when empty, the first place that has a config.json; NotFound lists them.
Result<Path> FindModelDir(const Path& given);

}  // namespace deepinfer
