#include "tokenizer/detokenizer.h"

#include <utility>

#include "tokenizer/utf8.h"

namespace deepinfer {

std::string Detokenizer::Add(int32_t token) {
  held_.append(tokenizer_->BytesOf(token));
  std::string out;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Step step = NextUtf8(rest);
    if (step.kind == Utf8Step::Kind::kIncomplete) break;
    out.append(step.kind == Utf8Step::Kind::kCharacter ? rest.substr(0, step.length)
                                                       : kReplacementCharacter);
    rest.remove_prefix(step.length);
  }
  held_.erase(0, held_.size() - rest.size());
  return out;
}

std::string Detokenizer::Flush() { return LossyUtf8(std::exchange(held_, {})); }

}  // namespace deepinfer
