// Reads the tokenizer.json of the Hugging Face tokenizers library, as far as byte-level BPE with
// regular-expression splits goes.  What a file asks for beyond that is refused, not ignored.
#pragma once

#include <string_view>

#include "base/status.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace deepinfer {

struct TokenizerParts {
  Vocabulary vocabulary;
  BpeMerger merger;
  PreTokenizer pre_tokenizer;
  AddedTokenMatcher added_tokens;
  bool whole_words_first = false;  // a word that is a token is not merged (`ignore_merges`)
};

// CorruptData or Unsupported, with the JSON path, what was found there and what was expected.
Result<TokenizerParts> ParseTokenizerJson(std::string_view json);

}  // namespace deepinfer
