#include "tokenizer/pre_tokenizer.h"

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "tokenizer/unicode_additions.h"

namespace deepinfer {
namespace {

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct MatchContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// Steps a single search may take: a floor that ordinary patterns never reach, plus room for runs
// that are legitimately backtracked over once.
constexpr uint64_t kBaseMatchLimit = 10'000'000;
constexpr uint64_t kMatchLimitPerByte = 16;

// Rewrites what PCRE2 understands differently than Oniguruma does: \s is the property White_Space
// (PCRE2's own also takes U+180E), and general categories know newer characters.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string Translate() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_++];
      if (c == '\\' && at_ < pattern_.size()) {
        Escape(pattern_[at_++]);
        continue;
      }
      out_.push_back(c);
      if (c == '[' && !in_class_) {
        in_class_ = true;
        // A bracket at the start of a class is one of its characters.
        CopyIf('^');
        CopyIf(']');
      } else if (c == ']') {
        in_class_ = false;
      }
    }
    return std::move(out_);
  }

 private:
  void CopyIf(char expected) {
    if (at_ < pattern_.size() && pattern_[at_] == expected) out_.push_back(pattern_[at_++]);
  }

  // `escaped` is the character behind the backslash.
  void Escape(char escaped) {
    if (escaped == 's') {
      out_ += "\\p{White_Space}";
    } else if (escaped == 'S') {
      out_ += "\\P{White_Space}";
    } else if ((escaped == 'p' || (escaped == 'P' && !in_class_)) && IsCategory()) {
      Category(escaped == 'P');
    } else {
      out_.append({'\\', escaped});
    }
  }

  // Whether "{L}" or another extended category comes next.
  bool IsCategory() const {
    const std::string_view next = pattern_.substr(at_, 3);
    return next.size() == 3 && next[0] == '{' && next[2] == '}' && !NewCharacters(next[1]).empty();
  }

  void Category(bool negated) {
    const char category = pattern_[at_ + 1];
    at_ += 3;
    if (!in_class_) out_ += negated ? "[^" : "[";
    out_ += fmt::format("\\p{{{}}}", category);
    for (const CodePointRange& range : NewCharacters(category)) {
      out_ += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", static_cast<uint32_t>(range.first),
                          static_cast<uint32_t>(range.last));
    }
    if (!in_class_) out_ += "]";
  }

  std::string_view pattern_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

std::string MessageOf(int error) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

class PreTokenizer::Pattern {
 public:
  static Result<Pattern> Compile(const std::string& source) {
    const std::string translated = Translator(source).Translate();
    int error = 0;
    PCRE2_SIZE offset = 0;
    Pattern pattern;
    pattern.source_ = source;
    pattern.code_.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr));
    if (pattern.code_ == nullptr) {
      return CorruptData(
          fmt::format("pattern '{}': found '{}' at byte {} of '{}', expected a regular expression",
                      source, MessageOf(error), offset, translated));
    }
    // Without JIT (it can be compiled out of the library) matching is slower, not different.
    pcre2_jit_compile(pattern.code_.get(), PCRE2_JIT_COMPLETE);
    return pattern;
  }

  // Appends the pieces of one piece.
  Status Split(std::string_view text, std::vector<std::string_view>& pieces, pcre2_match_data* data,
               pcre2_match_context* context) const {
    size_t done = 0;
    for (size_t from = 0; from < text.size();) {
      const int count = Match(text, from, data, context);
      if (count == PCRE2_ERROR_NOMATCH) break;
      if (count < 0) {
        return InvalidArgument(
            fmt::format("pattern '{}': found '{}' in a text of {} bytes, "
                        "expected a search that ends",
                        source_, MessageOf(count), text.size()));
      }
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data);
      const size_t begin = bounds[0];
      const size_t end = bounds[1];
      if (begin > done) pieces.push_back(text.substr(done, begin - done));
      if (end > begin) pieces.push_back(text.substr(begin, end - begin));
      done = end;
      from = end > begin ? end : NextCharacter(text, end);
    }
    if (done < text.size()) pieces.push_back(text.substr(done));
    return Status::Ok();
  }

 private:
  int Match(std::string_view text, size_t from, pcre2_match_data* data,
            pcre2_match_context* context) const {
    const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const int count =
        pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context);
    if (count != PCRE2_ERROR_JIT_STACKLIMIT) return count;
    return pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       data, context);
  }

  static size_t NextCharacter(std::string_view text, size_t pos) {
    ++pos;
    while (pos < text.size() && (static_cast<uint8_t>(text[pos]) & 0xC0) == 0x80) ++pos;
    return pos;
  }

  std::string source_;
  std::unique_ptr<pcre2_code, CodeDeleter> code_;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&& other) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&& other) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::Create(const std::vector<std::string>& patterns) {
  PreTokenizer splitter;
  for (const std::string& source : patterns) {
    ASSIGN_OR_RETURN(Pattern pattern, Pattern::Compile(source));
    splitter.patterns_.push_back(std::move(pattern));
  }
  return splitter;
}

Status PreTokenizer::Split(std::string_view text, std::vector<std::string_view>& pieces) const {
  pieces.clear();
  if (text.empty()) return Status::Ok();
  const std::unique_ptr<pcre2_match_data, MatchDataDeleter> data(
      pcre2_match_data_create(1, nullptr));
  const std::unique_ptr<pcre2_match_context, MatchContextDeleter> context(
      pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr) {
    return ResourceExhausted("found no memory for a regular expression match, expected some");
  }
  const uint64_t limit = kBaseMatchLimit + kMatchLimitPerByte * text.size();
  pcre2_set_match_limit(context.get(),
                        static_cast<uint32_t>(std::min<uint64_t>(limit, UINT32_MAX)));
  pieces.push_back(text);
  std::vector<std::string_view> whole;
  for (const Pattern& pattern : patterns_) {
    whole.swap(pieces);
    pieces.clear();
    for (const std::string_view piece : whole) {
      RETURN_IF_ERROR(pattern.Split(piece, pieces, data.get(), context.get()));
    }
  }
  return Status::Ok();
}

}  // namespace deepinfer
