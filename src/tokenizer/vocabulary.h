// All tokens of a tokenizer: id <-> spelling in the file, and the bytes each one stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// Immutable; thread-safe.  Views returned live as long as the object and survive its move.
class Vocabulary {
 public:
  struct Entry {
    std::string_view spelling;  // valid UTF-8
    int64_t id = 0;
    bool added = false;  // an added token stands for its spelling, not for spelled bytes
  };

  Vocabulary() = default;
  // Copies the spellings.  An added token may repeat a vocabulary entry of the same id and
  // spelling. Refused: ids that are not exactly 0..n-1, two spellings of an id, two ids of a
  // spelling.
  static Result<Vocabulary> Build(const std::vector<Entry>& entries);

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  // Preconditions of the next three: 0 <= id < size().
  std::string_view Spelling(int32_t id) const;
  std::string_view Bytes(int32_t id) const;
  bool IsAdded(int32_t id) const { return tokens_[static_cast<size_t>(id)].added; }

  std::optional<int32_t> Find(std::string_view spelling) const;

 private:
  struct Token {
    uint32_t spelling_begin = 0;
    uint32_t spelling_size = 0;
    uint32_t bytes_begin = 0;
    uint32_t bytes_size = 0;
    bool present = false;
    bool added = false;
  };

  Status AddEntry(const Entry& entry);
  size_t SlotOf(std::string_view spelling) const;

  // std::vector rather than std::string: moving it never moves the characters.
  std::vector<char> spellings_;
  std::vector<char> bytes_;
  std::vector<Token> tokens_;   // [size]
  std::vector<int32_t> slots_;  // hash table of ids, linear probing, -1: free; size a power of two
};

}  // namespace deepinfer
