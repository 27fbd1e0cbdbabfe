// The parts of a tokenizer.json, read and checked.  Private to the tokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pre_tokenizer.h"

namespace deepinfer {

struct TokenizerFile {
  struct Token {
    std::string bytes;     // what it stands for
    std::string spelling;  // byte-level; empty for an added token
    bool added = false;
  };

  std::vector<Token> tokens;          // by id; ids that no token has are empty
  std::array<int32_t, 256> byte_ids;  // token of each single byte
  MergeTable merges;
  AddedTokenTrie added;
  PreTokenizer pre_tokenizer;
};

// CorruptData or Unsupported, naming what was found and what was expected.
Result<TokenizerFile> ParseTokenizerFile(std::string_view json);

}  // namespace deepinfer
