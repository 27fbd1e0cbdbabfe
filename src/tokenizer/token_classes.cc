#include "tokenizer/token_classes.h"

#include <fmt/format.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

// Not more: only these four characters are collapsed; other white space is merely trimmed.
bool IsCollapsible(char32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool IsWhiteSpace(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)); }

// Runs of collapsible white space become one space; then both ends are trimmed, unless the whole
// text is one space.
std::u32string CollapseAndTrim(const std::u32string& text) {
  std::u32string collapsed;
  for (const char32_t c : text) {
    if (!IsCollapsible(c)) {
      collapsed.push_back(c);
    } else if (collapsed.empty() || collapsed.back() != U' ') {
      collapsed.push_back(U' ');
    }
  }
  if (collapsed == U" ") return collapsed;
  const auto begin = std::find_if_not(collapsed.begin(), collapsed.end(), IsWhiteSpace);
  const auto end = std::find_if_not(collapsed.rbegin(), collapsed.rend(), IsWhiteSpace).base();
  return begin < end ? std::u32string(begin, end) : std::u32string();
}

// The function N of model.md section 9.1.
class Folder {
 public:
  static Result<Folder> Create() {
    UErrorCode error = U_ZERO_ERROR;
    Folder folder;
    folder.nfkc_ = icu::Normalizer2::getNFKCInstance(error);
    folder.nfd_ = icu::Normalizer2::getNFDInstance(error);
    if (U_FAILURE(error)) return Failed(error);
    return folder;
  }

  Result<std::string> Fold(std::string_view text) const {
    std::u32string folded;
    if (IsAscii(text)) {
      for (const char c : text) folded.push_back(Lower(static_cast<uint8_t>(c)));
    } else {
      UErrorCode error = U_ZERO_ERROR;
      const icu::UnicodeString source = icu::UnicodeString::fromUTF8(
          icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
      const icu::UnicodeString decomposed = nfd_->normalize(nfkc_->normalize(source, error), error);
      if (U_FAILURE(error)) return Failed(error);
      AppendUnmarked(decomposed, folded);
    }
    std::string out;
    for (const char32_t c : CollapseAndTrim(folded)) AppendCodePoint(c, out);
    return out;
  }

 private:
  static Status Failed(UErrorCode error) {
    return Internal(
        fmt::format("Unicode normalisation: found error '{}', expected none", u_errorName(error)));
  }

  // One character by itself: no final-sigma rule, which depends on neighbours.
  static char32_t Lower(char32_t c) {
    return static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
  }

  static void AppendUnmarked(const icu::UnicodeString& text, std::u32string& out) {
    for (int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
      const UChar32 c = text.char32At(i);
      if ((U_GET_GC_MASK(c) & U_GC_M_MASK) == 0) out.push_back(Lower(static_cast<char32_t>(c)));
    }
  }

  const icu::Normalizer2* nfkc_ = nullptr;  // owned by the library
  const icu::Normalizer2* nfd_ = nullptr;
};

}  // namespace

Result<std::vector<int32_t>> TokenClasses(const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const Folder folder, Folder::Create());
  std::unordered_map<std::string, int32_t> class_of_key;
  class_of_key.reserve(static_cast<size_t>(tokenizer.vocab_size()));
  std::vector<int32_t> classes;
  classes.reserve(static_cast<size_t>(tokenizer.vocab_size()));
  for (int32_t token = 0; token < tokenizer.vocab_size(); ++token) {
    const std::string text = tokenizer.Decode({&token, 1});
    std::string key;
    if (text.find(kReplacementCharacter) != std::string::npos) {
      key = tokenizer.SpellingOf(token);
    } else {
      ASSIGN_OR_RETURN(key, folder.Fold(text));
      if (key.empty()) key = text;
    }
    const auto next = static_cast<int32_t>(class_of_key.size());
    classes.push_back(class_of_key.try_emplace(std::move(key), next).first->second);
  }
  return classes;
}

}  // namespace deepinfer
