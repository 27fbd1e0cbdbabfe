#include "tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "tokenizer/byte_alphabet.h"

namespace deepinfer {
namespace {

constexpr int32_t kFreeSlot = -1;
// Offsets are 32 bits wide.
constexpr size_t kMaxCharacters = size_t{1} << 31;

}  // namespace

std::string_view Vocabulary::Spelling(int32_t id) const {
  const Token& token = tokens_[static_cast<size_t>(id)];
  return {spellings_.data() + token.spelling_begin, token.spelling_size};
}

std::string_view Vocabulary::Bytes(int32_t id) const {
  const Token& token = tokens_[static_cast<size_t>(id)];
  if (token.added) return Spelling(id);
  return {bytes_.data() + token.bytes_begin, token.bytes_size};
}

// The slot that holds the spelling, or the free one where it belongs.
size_t Vocabulary::SlotOf(std::string_view spelling) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>()(spelling) & mask;
  while (slots_[slot] != kFreeSlot && Spelling(slots_[slot]) != spelling) slot = (slot + 1) & mask;
  return slot;
}

std::optional<int32_t> Vocabulary::Find(std::string_view spelling) const {
  if (slots_.empty()) return std::nullopt;
  const int32_t id = slots_[SlotOf(spelling)];
  return id == kFreeSlot ? std::nullopt : std::optional(id);
}

Status Vocabulary::AddEntry(const Entry& entry) {
  if (entry.id < 0 || entry.id >= size()) {
    return CorruptData(fmt::format("token '{}': found id {}, expected ids 0 to {} without gaps",
                                   entry.spelling, entry.id, size() - 1));
  }
  const auto id = static_cast<int32_t>(entry.id);
  Token& token = tokens_[static_cast<size_t>(id)];
  if (token.present) {
    if (Spelling(id) != entry.spelling || !entry.added || token.added) {
      return CorruptData(fmt::format("token id {}: found '{}' and '{}', expected one token per id",
                                     id, Spelling(id), entry.spelling));
    }
    token.added = true;
    return Status::Ok();
  }
  const size_t slot = SlotOf(entry.spelling);
  if (slots_[slot] != kFreeSlot) {
    return CorruptData(fmt::format("token '{}': found ids {} and {}, expected one id per token",
                                   entry.spelling, slots_[slot], id));
  }
  token = {.spelling_begin = static_cast<uint32_t>(spellings_.size()),
           .spelling_size = static_cast<uint32_t>(entry.spelling.size()),
           .bytes_begin = static_cast<uint32_t>(bytes_.size()),
           .bytes_size = 0,
           .present = true,
           .added = entry.added};
  spellings_.insert(spellings_.end(), entry.spelling.begin(), entry.spelling.end());
  std::string bytes;
  // A spelling outside the byte alphabet stands for itself, as in the published decoder.
  if (!AppendSpelledBytes(entry.spelling, bytes)) bytes.assign(entry.spelling);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  token.bytes_size = static_cast<uint32_t>(bytes.size());
  slots_[slot] = id;
  return Status::Ok();
}

Result<Vocabulary> Vocabulary::Build(const std::vector<Entry>& entries) {
  int64_t largest = -1;
  size_t characters = 0;
  for (const Entry& entry : entries) {
    largest = std::max(largest, entry.id);
    characters += entry.spelling.size();
  }
  // Without gaps there are at least as many entries as ids; this also bounds the allocation.
  if (largest >= static_cast<int64_t>(entries.size()) || characters > kMaxCharacters) {
    return CorruptData(
        fmt::format("found token id {} among {} tokens of {} characters, expected ids without gaps",
                    largest, entries.size(), characters));
  }
  Vocabulary vocabulary;
  vocabulary.spellings_.reserve(characters);
  vocabulary.bytes_.reserve(characters);
  vocabulary.tokens_.resize(static_cast<size_t>(largest + 1));
  vocabulary.slots_.assign(std::bit_ceil(2 * vocabulary.tokens_.size() + 1), kFreeSlot);
  for (const Entry& entry : entries) RETURN_IF_ERROR(vocabulary.AddEntry(entry));
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.tokens_[static_cast<size_t>(id)].present) {
      return CorruptData(fmt::format(
          "found no token with id {}, expected one for every id up to {}", id, largest));
    }
  }
  return vocabulary;
}

}  // namespace deepinfer
