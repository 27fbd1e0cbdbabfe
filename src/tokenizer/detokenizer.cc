#include "tokenizer/detokenizer.h"

namespace deepinfer {

std::string_view Detokenizer::Add(int32_t token) {
  piece_.clear();
  decoder_.Add(tokenizer_->BytesOf(token), piece_);
  return piece_;
}

std::string_view Detokenizer::Flush() {
  piece_.clear();
  decoder_.Finish(piece_);
  return piece_;
}

}  // namespace deepinfer
