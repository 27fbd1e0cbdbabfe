// Classes of tokens that look alike to the n-gram memory: same text up to case, accents,
// compatibility forms and surrounding white space (model.md section 9.1).
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

// The class of every token id, numbered in order of first appearance.  Fails only when the Unicode
// library does.
Result<std::vector<int32_t>> TokenClasses(const Tokenizer& tokenizer);

}  // namespace deepinfer
