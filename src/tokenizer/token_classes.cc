#include "tokenizer/token_classes.h"

#include <fmt/format.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <string>
#include <unordered_map>

#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

// What Python's str.strip removes, without the four separators U+001C..U+001F.
bool IsWhiteSpace(UChar32 c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool IsMark(UChar32 c) { return (U_GET_GC_MASK(c) & U_GC_M_MASK) != 0; }

class Normalizer {
 public:
  static Result<Normalizer> Create() {
    UErrorCode error = U_ZERO_ERROR;
    const icu::Normalizer2* nfkc = icu::Normalizer2::getNFKCInstance(error);
    const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(error);
    if (U_FAILURE(error)) {
      return Internal(fmt::format("ICU: no normalisation data: {}", u_errorName(error)));
    }
    return Normalizer(nfkc, nfd);
  }

  // NFKC, NFD, no marks, lower case, one space for a run of blanks, trimmed (unless all is one
  // space).
  std::string Normalize(std::string_view text) const {
    UErrorCode error = U_ZERO_ERROR;
    const icu::UnicodeString source = icu::UnicodeString::fromUTF8(
        icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
    const icu::UnicodeString decomposed = nfd_->normalize(nfkc_->normalize(source, error), error);
    icu::UnicodeString levelled;
    bool after_blank = false;
    for (int32_t i = 0; i < decomposed.length(); i = decomposed.moveIndex32(i, 1)) {
      const UChar32 c = decomposed.char32At(i);
      if (IsMark(c)) continue;
      const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
      if (blank && after_blank) continue;
      after_blank = blank;
      if (blank) {
        levelled.append(static_cast<UChar32>(' '));
      } else {
        // A single character at a time: no context, as the rule says.
        icu::UnicodeString lower(c);
        levelled.append(lower.toLower(icu::Locale::getRoot()));
      }
    }
    return Trimmed(levelled);
  }

 private:
  Normalizer(const icu::Normalizer2* nfkc, const icu::Normalizer2* nfd) : nfkc_(nfkc), nfd_(nfd) {}

  static std::string Trimmed(const icu::UnicodeString& text) {
    std::string out;
    if (text == icu::UnicodeString(static_cast<UChar32>(' '))) return " ";
    int32_t begin = 0;
    int32_t end = text.length();
    while (begin < end && IsWhiteSpace(text.char32At(begin))) begin = text.moveIndex32(begin, 1);
    while (end > begin && IsWhiteSpace(text.char32At(end - 1))) end = text.moveIndex32(end, -1);
    text.tempSubStringBetween(begin, end).toUTF8String(out);
    return out;
  }

  const icu::Normalizer2* nfkc_;
  const icu::Normalizer2* nfd_;
};

// What a token is told apart by.
std::string ClassKey(const Tokenizer& tokenizer, const Normalizer& normalizer, int32_t token) {
  const std::string text = LossyUtf8(tokenizer.BytesOf(token));
  if (text.find(kReplacementCharacter) != std::string::npos) {
    return std::string(tokenizer.SpellingOf(token));
  }
  std::string normal = normalizer.Normalize(text);
  return normal.empty() ? text : normal;
}

}  // namespace

Result<std::vector<int32_t>> TokenClasses(const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const Normalizer normalizer, Normalizer::Create());
  std::unordered_map<std::string, int32_t> seen;
  std::vector<int32_t> classes;
  classes.reserve(static_cast<size_t>(tokenizer.vocab_size()));
  for (int32_t token = 0; token < tokenizer.vocab_size(); ++token) {
    const auto next = static_cast<int32_t>(seen.size());
    classes.push_back(seen.try_emplace(ClassKey(tokenizer, normalizer, token), next).first->second);
  }
  return classes;
}

}  // namespace deepinfer
