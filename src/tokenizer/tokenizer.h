// Byte-level BPE as a Hugging Face tokenizer.json describes it (prompt_format.md section 1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/file.h"

namespace deepinfer {

struct EncodeOptions {
  // Whether added tokens (<think>, <｜User｜>, ...) in the text become their ids, as the reference
  // does. Off for untrusted text: it then stays ordinary text whatever it spells.
  bool match_added_tokens = true;
};

// Immutable after Load; thread-safe.  Move-only.
class Tokenizer {
 public:
  static Result<Tokenizer> Load(const Path& path);
  // The text of a tokenizer.json.
  static Result<Tokenizer> Parse(std::string_view json);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // InvalidArgument that names the byte offset when the text is not UTF-8.  No token is added that
  // the text does not spell.
  Result<std::vector<int32_t>> Encode(std::string_view text,
                                      const EncodeOptions& options = {}) const;

  // Bytes of the tokens one after the other; not necessarily UTF-8.  Ids outside the vocabulary
  // spell nothing.
  std::string Decode(const std::vector<int32_t>& tokens) const;

  // One more than the largest id.
  int64_t vocab_size() const;
  // What a token stands for; empty for an id that no token has.
  std::string_view BytesOf(int32_t token) const;
  // The spelling in tokenizer.json: byte-level for ordinary tokens, verbatim for added ones.
  std::string_view SpellingOf(int32_t token) const;
  bool IsAdded(int32_t token) const;
  // The id of an added token by its content, e.g. "<｜User｜>"; ids differ between checkpoints.
  std::optional<int32_t> FindAdded(std::string_view content) const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace deepinfer
