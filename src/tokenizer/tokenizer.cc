#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;
// Words are indexed with 32 bits.
constexpr size_t kMaxTextBytes = std::numeric_limits<int32_t>::max();

// The image token under the name that prompts use, and the name some files give the same id
// (prompt_format.md section 1).
constexpr std::string_view kImage = "<｜deepseek_image｜>";
constexpr std::string_view kImageAlias = "<｜image｜>";

struct RequiredName {
  std::string_view spelling;
  int32_t SpecialTokens::*field;
};
constexpr std::array kRequired = {
    RequiredName{"<｜begin▁of▁sentence｜>", &SpecialTokens::bos},
    RequiredName{"<｜end▁of▁sentence｜>", &SpecialTokens::eos},
    RequiredName{"<｜User｜>", &SpecialTokens::user},
    RequiredName{"<｜Assistant｜>", &SpecialTokens::assistant},
    RequiredName{"<｜System｜>", &SpecialTokens::system},
    RequiredName{"<think>", &SpecialTokens::think_begin},
    RequiredName{"</think>", &SpecialTokens::think_end},
    RequiredName{"｜DSML｜", &SpecialTokens::dsml},
};

struct OptionalName {
  std::string_view spelling;
  std::optional<int32_t> SpecialTokens::*field;
};
constexpr std::array kOptional = {
    OptionalName{"<｜▁pad▁｜>", &SpecialTokens::pad},
    OptionalName{"<｜latest_reminder｜>", &SpecialTokens::latest_reminder},
    OptionalName{"<｜action｜>", &SpecialTokens::action},
    OptionalName{"<｜query｜>", &SpecialTokens::query},
    OptionalName{"<｜authority｜>", &SpecialTokens::authority},
    OptionalName{"<｜domain｜>", &SpecialTokens::domain},
    OptionalName{"<｜title｜>", &SpecialTokens::title},
    OptionalName{"<｜read_url｜>", &SpecialTokens::read_url},
};

}  // namespace

Result<Tokenizer> Tokenizer::Load(const Path& path) {
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxFileBytes));
  Result<Tokenizer> tokenizer = Parse(json);
  if (!tokenizer.ok()) return std::move(tokenizer).status().WithContext(path.string());
  return tokenizer;
}

Result<Tokenizer> Tokenizer::Parse(std::string_view json) {
  ASSIGN_OR_RETURN(TokenizerParts parts, ParseTokenizerJson(json));
  Tokenizer tokenizer(std::move(parts));
  RETURN_IF_ERROR(tokenizer.FindSpecialTokens());
  return tokenizer;
}

Status Tokenizer::FindSpecialTokens() {
  for (const RequiredName& name : kRequired) {
    const std::optional<int32_t> token = FindAdded(name.spelling);
    if (!token) {
      return CorruptData(fmt::format("added_tokens: found no '{}', expected one", name.spelling));
    }
    special_.*name.field = *token;
  }
  for (const OptionalName& name : kOptional) special_.*name.field = FindAdded(name.spelling);
  special_.image = FindAdded(kImage);
  if (!special_.image) {
    special_.image = FindAdded(kImageAlias);
    if (special_.image) parts_.added_tokens.Add(kImage, *special_.image);
  }
  return Status::Ok();
}

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                               const EncodeOptions& options) const {
  const Range all{0, text.size()};
  return EncodeRanges(text, std::span(&all, options.match_added_tokens ? 1 : 0));
}

Result<std::vector<int32_t>> Tokenizer::EncodeSegments(
    std::span<const PromptSegment> segments) const {
  std::string text;
  std::vector<Range> trusted;
  for (const PromptSegment& segment : segments) {
    const size_t begin = text.size();
    text += segment.text;
    if (!segment.trusted || segment.text.empty()) continue;
    if (!trusted.empty() && trusted.back().end == begin) {
      trusted.back().end = text.size();
    } else {
      trusted.push_back({begin, text.size()});
    }
  }
  return EncodeRanges(text, trusted);
}

Result<std::vector<int32_t>> Tokenizer::EncodeRanges(std::string_view text,
                                                     std::span<const Range> trusted) const {
  if (text.size() > kMaxTextBytes) {
    return InvalidArgument(
        fmt::format("found a text of {} bytes, expected at most {}", text.size(), kMaxTextBytes));
  }
  if (const std::optional<size_t> bad = FirstInvalidUtf8(text)) {
    return InvalidArgument(fmt::format("found byte 0x{:02x} at byte offset {}, expected UTF-8",
                                       static_cast<uint8_t>(text[*bad]), *bad));
  }
  std::vector<int32_t> tokens;
  std::vector<std::string_view> words;
  size_t done = 0;
  for (const Range& range : trusted) {
    const std::string_view visible = text.substr(0, range.end);
    size_t from = range.begin;
    while (const auto match = parts_.added_tokens.Find(visible, from)) {
      RETURN_IF_ERROR(EncodePlain(text.substr(done, match->begin - done), words, tokens));
      tokens.push_back(match->token);
      done = from = match->end;
    }
  }
  RETURN_IF_ERROR(EncodePlain(text.substr(done), words, tokens));
  return tokens;
}

// `words` is scratch.
Status Tokenizer::EncodePlain(std::string_view text, std::vector<std::string_view>& words,
                              std::vector<int32_t>& out) const {
  RETURN_IF_ERROR(parts_.pre_tokenizer.Split(text, words));
  for (const std::string_view word : words) {
    const std::optional<int32_t> whole = parts_.whole_words_first ? WholeWord(word) : std::nullopt;
    if (whole) {
      out.push_back(*whole);
    } else {
      parts_.merger.Encode(word, out);
    }
  }
  return Status::Ok();
}

std::optional<int32_t> Tokenizer::WholeWord(std::string_view word) const {
  std::string spelling;
  for (const char c : word) spelling += SpellByte(static_cast<uint8_t>(c));
  const std::optional<int32_t> token = parts_.vocabulary.Find(spelling);
  return token && !IsAdded(*token) ? token : std::nullopt;
}

std::string Tokenizer::Decode(std::span<const int32_t> tokens) const {
  std::string text;
  LossyUtf8Decoder decoder;
  for (const int32_t token : tokens) decoder.Add(BytesOf(token), text);
  decoder.Finish(text);
  return text;
}

std::string_view Tokenizer::SpellingOf(int32_t token) const {
  return Contains(token) ? parts_.vocabulary.Spelling(token) : std::string_view();
}

std::string_view Tokenizer::BytesOf(int32_t token) const {
  return Contains(token) ? parts_.vocabulary.Bytes(token) : std::string_view();
}

bool Tokenizer::IsAdded(int32_t token) const {
  return Contains(token) && parts_.vocabulary.IsAdded(token);
}

std::optional<int32_t> Tokenizer::FindAdded(std::string_view spelling) const {
  const std::optional<int32_t> token = parts_.vocabulary.Find(spelling);
  return token && IsAdded(*token) ? token : std::nullopt;
}

}  // namespace deepinfer
