#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pre_tokenizer.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <utility>

#include "base/check.h"

namespace deepinfer {
namespace {

// Unicode White_Space, which \s means to the tokenizers that trained on these patterns.  PCRE2's
// own \s also takes U+180E.
constexpr std::string_view kSpace =
    R"(\x{09}-\x{0d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// Spells \s and \S out, inside and outside of character classes.
std::string WithUnicodeSpace(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's') {
        out += in_class ? std::string(kSpace) : fmt::format("[{}]", kSpace);
      } else if (escaped == 'S' && !in_class) {
        out += fmt::format("[^{}]", kSpace);
      } else {
        out += c;
        out += escaped;
      }
      continue;
    }
    if (c == '[' && in_class) {
      out += '\\';  // literal there; PCRE2 might read "[:" as a POSIX name
    }
    in_class = c == '[' || (in_class && c != ']');
    out += c;
  }
  return out;
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

}  // namespace

struct PreTokenizer::Pattern {
  std::unique_ptr<pcre2_code, FreeCode> code;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::Compile(const std::vector<std::string>& patterns) {
  PreTokenizer result;
  for (const std::string& pattern : patterns) {
    const std::string spelled = WithUnicodeSpace(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &offset, nullptr);
    if (code == nullptr) {
      char message[256] = {};
      pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
      return Unsupported(
          fmt::format("pre-tokenizer pattern '{}': {} at {}", pattern, message, offset));
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT the same matches, slower
    result.patterns_.push_back({std::unique_ptr<pcre2_code, FreeCode>(code)});
  }
  return result;
}

void PreTokenizer::SplitBy(const Pattern& pattern, std::string_view piece,
                           std::vector<std::string_view>& out) {
  const std::unique_ptr<pcre2_match_data, FreeMatchData> match(pcre2_match_data_create(1, nullptr));
  CHECK(match != nullptr);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
  size_t done = 0;  // everything before it is in `out`
  size_t at = 0;
  while (at < piece.size()) {
    int found = pcre2_match(pattern.code.get(), subject, piece.size(), at, PCRE2_NO_UTF_CHECK,
                            match.get(), nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match(pattern.code.get(), subject, piece.size(), at,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match.get(), nullptr);
    }
    if (found < 0) break;
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
    if (range[1] == range[0]) {
      ++at;  // an empty match splits nothing
      continue;
    }
    if (range[0] > done) out.push_back(piece.substr(done, range[0] - done));
    out.push_back(piece.substr(range[0], range[1] - range[0]));
    done = at = range[1];
  }
  if (done < piece.size()) out.push_back(piece.substr(done));
}

std::vector<std::string_view> PreTokenizer::Split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  std::vector<std::string_view> next;
  for (const Pattern& pattern : patterns_) {
    next.clear();
    for (const std::string_view piece : pieces) SplitBy(pattern, piece, next);
    std::swap(pieces, next);
  }
  return pieces;
}

}  // namespace deepinfer
