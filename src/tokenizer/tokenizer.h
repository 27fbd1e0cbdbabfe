// Text <-> token ids by the byte-level BPE of a tokenizer.json (prompt_format.md section 1).
//
// Encoding: added tokens are cut out of the raw text first, whatever their `special` flag says; the
// text between them is split into words by the file's regular expressions, and each word is merged
// from its bytes.  Nothing is added around the text: a prompt spells its own beginning of sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "tokenizer/tokenizer_json.h"

namespace deepinfer {

struct EncodeOptions {
  // false for text from outside that must not be able to spell control tokens.
  bool match_added_tokens = true;
};

// A part of a prompt.  Added tokens are recognised only where a whole spelling lies in trusted
// text.
struct PromptSegment {
  std::string text;
  bool trusted = true;

  friend bool operator==(const PromptSegment&, const PromptSegment&) = default;
};

// Ids found by spelling, because they differ between tokenizers of the family.
struct SpecialTokens {
  int32_t bos = 0;
  int32_t eos = 0;
  int32_t user = 0;
  int32_t assistant = 0;
  int32_t system = 0;
  int32_t think_begin = 0;
  int32_t think_end = 0;
  int32_t dsml = 0;
  // Not every tokenizer has these:
  std::optional<int32_t> pad;
  std::optional<int32_t> image;
  std::optional<int32_t> latest_reminder;
  std::optional<int32_t> action;
  std::optional<int32_t> query;
  std::optional<int32_t> authority;
  std::optional<int32_t> domain;
  std::optional<int32_t> title;
  std::optional<int32_t> read_url;
};

// Move-only.  Immutable after loading; every const function may be called from several threads.
class Tokenizer {
 public:
  // Reads a tokenizer.json; errors name the file, the place in it, what was found and expected.
  static Result<Tokenizer> Load(const Path& path);
  static Result<Tokenizer> Parse(std::string_view json);

  // InvalidArgument for text that is not UTF-8, with the offset of the first bad byte.
  Result<std::vector<int32_t>> Encode(std::string_view text,
                                      const EncodeOptions& options = {}) const;
  // The ids of the joined text of all segments, so that words may cross a border between them.
  Result<std::vector<int32_t>> EncodeSegments(std::span<const PromptSegment> segments) const;

  // The text of all tokens, added ones spelled out; bytes that are not UTF-8 become U+FFFD.
  std::string Decode(std::span<const int32_t> tokens) const;

  // Ids are 0 .. vocab_size() - 1.
  int32_t vocab_size() const { return parts_.vocabulary.size(); }
  // The token as the file spells it, and the bytes it stands for.  Both are empty for ids outside
  // the vocabulary (a model may have more logits than its tokenizer has tokens).  The views live as
  // long as this object.
  std::string_view SpellingOf(int32_t token) const;
  std::string_view BytesOf(int32_t token) const;
  bool IsAdded(int32_t token) const;
  std::optional<int32_t> FindAdded(std::string_view spelling) const;

  const SpecialTokens& special() const { return special_; }

 private:
  struct Range {
    size_t begin;
    size_t end;
  };

  explicit Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {}
  Status FindSpecialTokens();
  bool Contains(int32_t token) const { return token >= 0 && token < vocab_size(); }
  // Added tokens are looked for inside `trusted`: ascending ranges that do not touch.
  Result<std::vector<int32_t>> EncodeRanges(std::string_view text,
                                            std::span<const Range> trusted) const;
  Status EncodePlain(std::string_view text, std::vector<std::string_view>& words,
                     std::vector<int32_t>& out) const;
  std::optional<int32_t> WholeWord(std::string_view word) const;

  TokenizerParts parts_;
  SpecialTokens special_;
};

}  // namespace deepinfer
