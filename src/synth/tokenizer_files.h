// A tokenizer for made-up checkpoints of any vocabulary size: byte-level BPE without merges, so
// that every byte is a token, all control tokens of the release by their spelling, and fillers, so
// that every id that a random model may choose has a text.
//
//   0 1 2              beginning of sentence, end of sentence, padding
//   3 .. 258           the 256 bytes
//   259 .. size-n-1    fillers: " t259", " t260", ...
//   size-n .. size-1   the n other control tokens
#pragma once

#include <cstdint>
#include <string>

#include "model/config.h"

namespace deepinfer {

// Immutable.
class SynthVocabulary {
 public:
  static const int kMinSize;

  // Precondition: size >= kMinSize.
  explicit SynthVocabulary(int size) : size_(size) {}

  int32_t image_token() const;
  int32_t system_token() const;  // the lowest control token, as in the release's noise token

  // The text of tokenizer.json.
  std::string TokenizerJson() const;

 private:
  int size_;
};

// The texts of the small files beside it.
std::string TokenizerConfigJson(const ModelConfig& config);
std::string GenerationConfigJson(const ModelConfig& config);

}  // namespace deepinfer
