#include "tokenizer/detokenizer.h"

namespace deepinfer {

std::string Detokenizer::Add(int32_t token) {
  std::string text;
  decoder_.Add(tokenizer_->BytesOf(token), text);
  return text;
}

std::string Detokenizer::Flush() {
  std::string text;
  decoder_.Finish(text);
  return text;
}

}  // namespace deepinfer
