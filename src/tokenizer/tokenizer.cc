#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include "base/check.h"
#include "tokenizer/tokenizer_file.h"
#include "tokenizer/utf8.h"

namespace deepinfer {

namespace {
constexpr uint64_t kMaxFileBytes = uint64_t{512} << 20;
}  // namespace

struct Tokenizer::Impl {
  TokenizerFile file;

  // Text between added tokens.
  void EncodeOrdinary(std::string_view text, std::vector<int32_t>& out) const {
    for (const std::string_view piece : file.pre_tokenizer.Split(text)) {
      EncodePiece(piece, file.byte_ids, file.merges, out);
    }
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::Load(const Path& path) {
  ASSIGN_OR_RETURN(const std::string json, ReadFile(path, kMaxFileBytes));
  Result<Tokenizer> tokenizer = Parse(json);
  if (!tokenizer.ok()) return std::move(tokenizer).status().WithContext(path.string());
  return tokenizer;
}

Result<Tokenizer> Tokenizer::Parse(std::string_view json) {
  ASSIGN_OR_RETURN(TokenizerFile file, ParseTokenizerFile(json));
  return Tokenizer(std::make_unique<Impl>(Impl{std::move(file)}));
}

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                               const EncodeOptions& options) const {
  const size_t invalid = FirstInvalidUtf8(text);
  if (invalid != std::string_view::npos) {
    return InvalidArgument(fmt::format("text: found byte 0x{:02x} at offset {}, expected UTF-8",
                                       static_cast<unsigned char>(text[invalid]), invalid));
  }
  std::vector<int32_t> ids;
  const AddedTokenTrie& added = impl_->file.added;
  size_t done = 0;
  size_t at = options.match_added_tokens ? 0 : text.size();
  while (at < text.size()) {
    if (!added.MayBegin(static_cast<unsigned char>(text[at]))) {
      ++at;
      continue;
    }
    const auto match = added.LongestPrefix(text.substr(at));
    if (!match) {
      ++at;
      continue;
    }
    impl_->EncodeOrdinary(text.substr(done, at - done), ids);
    ids.push_back(match->id);
    done = at += match->length;
  }
  impl_->EncodeOrdinary(text.substr(done), ids);
  return ids;
}

std::string Tokenizer::Decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t token : tokens) text += BytesOf(token);
  return text;
}

int64_t Tokenizer::vocab_size() const { return static_cast<int64_t>(impl_->file.tokens.size()); }

std::string_view Tokenizer::BytesOf(int32_t token) const {
  if (token < 0 || token >= vocab_size()) return {};
  return impl_->file.tokens[static_cast<size_t>(token)].bytes;
}

std::string_view Tokenizer::SpellingOf(int32_t token) const {
  if (token < 0 || token >= vocab_size()) return {};
  const TokenizerFile::Token& entry = impl_->file.tokens[static_cast<size_t>(token)];
  return entry.added ? entry.bytes : entry.spelling;
}

bool Tokenizer::IsAdded(int32_t token) const {
  return token >= 0 && token < vocab_size() && impl_->file.tokens[static_cast<size_t>(token)].added;
}

std::optional<int32_t> Tokenizer::FindAdded(std::string_view content) const {
  const auto match = impl_->file.added.LongestPrefix(content);
  if (!match || match->length != content.size()) return std::nullopt;
  return match->id;
}

}  // namespace deepinfer
