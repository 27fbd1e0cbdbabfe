// Which configurations make sense: ranges and relations between the keys of config.json.
// Private to model/config.cc.
#pragma once

#include "base/status.h"

namespace deepinfer {

struct ModelConfig;

// CorruptData or Unsupported, naming the key, what was found and what was expected.
Status CheckConfig(const ModelConfig& config);

}  // namespace deepinfer
