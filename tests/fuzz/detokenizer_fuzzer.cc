// Any bytes in any pieces: the pieces of text are valid UTF-8, and together they are the lossy
// decode of the whole.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "small_tokenizer.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// One byte per token; ids 256 and up are reached through the two-byte form.
std::vector<int32_t> TokensOf(const uint8_t* data, size_t size) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < size; ++i) {
    const bool wide = data[i] == 0xFF && i + 1 < size;
    tokens.push_back(wide ? 250 + data[++i] : data[i]);
  }
  return tokens;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const deepinfer::Tokenizer tokenizer =
      *deepinfer::Tokenizer::Parse(deepinfer::SmallTokenizerJson());
  const std::vector<int32_t> tokens = TokensOf(data, size);
  deepinfer::Detokenizer detokenizer(tokenizer);
  std::string text;
  for (const int32_t token : tokens) {
    const std::string piece(detokenizer.Add(token));
    Require(!deepinfer::FirstInvalidUtf8(piece));
    text += piece;
  }
  text += detokenizer.Flush();
  Require(!deepinfer::FirstInvalidUtf8(text));
  Require(text == tokenizer.Decode(tokens));

  // Valid text survives; a piece of several bytes is the same as its bytes one by one.
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  deepinfer::LossyUtf8Decoder decoder;
  std::string whole;
  decoder.Add(bytes.substr(0, size / 2), whole);
  decoder.Add(bytes.substr(size / 2), whole);
  decoder.Finish(whole);
  std::string single;
  for (const char c : bytes) decoder.Add(std::string_view(&c, 1), single);
  decoder.Finish(single);
  Require(whole == single);
  Require(deepinfer::FirstInvalidUtf8(bytes).has_value() || whole == bytes);
  return 0;
}
