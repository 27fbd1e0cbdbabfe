// Classes of tokens for the n-gram memory (model.md section 9.1): tokens that read alike once case,
// accents and white space are levelled share a class.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

// Class of every token id, numbered by first appearance.  Internal when ICU's data is missing.
Result<std::vector<int32_t>> TokenClasses(const Tokenizer& tokenizer);

}  // namespace deepinfer
