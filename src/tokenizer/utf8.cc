#include "tokenizer/utf8.h"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace deepinfer {
namespace {

// What the bytes at a position are: a whole valid sequence, a valid sequence cut off by the end of
// the input, or `size` bytes that belong to no valid sequence.
enum class SequenceKind { kValid, kIncomplete, kInvalid };
struct Sequence {
  SequenceKind kind;
  size_t size;
};

// Length of the sequence a lead byte opens and the range of its second byte (Unicode Standard,
// table 3-7); length 0 for bytes that open none.
struct Lead {
  size_t length;
  uint8_t second_min;
  uint8_t second_max;
};

Lead ClassifyLead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) {
    return {3, static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte < 0xF5) {
    return {4, static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {0, 0, 0};
}

Sequence SequenceAt(std::string_view text) {
  const Lead lead = ClassifyLead(static_cast<uint8_t>(text[0]));
  if (lead.length == 0) return {SequenceKind::kInvalid, 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {SequenceKind::kIncomplete, i};
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {SequenceKind::kInvalid, i};
  }
  return {SequenceKind::kValid, lead.length};
}

}  // namespace

std::optional<size_t> FirstInvalidUtf8(std::string_view text) {
  if (simdjson::validate_utf8(text.data(), text.size())) return std::nullopt;
  for (size_t pos = 0; pos < text.size();) {
    const Sequence sequence = SequenceAt(text.substr(pos));
    if (sequence.kind != SequenceKind::kValid) return pos;
    pos += sequence.size;
  }
  return std::nullopt;
}

char32_t ReadCodePoint(std::string_view text, size_t& pos) {
  const auto first = static_cast<uint8_t>(text[pos]);
  const size_t length = ClassifyLead(first).length;
  DCHECK(length > 0 && pos + length <= text.size());
  constexpr std::array<uint8_t, 5> kPayloadMask = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code_point = first & kPayloadMask[length];
  for (size_t i = 1; i < length; ++i) {
    code_point = code_point << 6 | (static_cast<uint8_t>(text[pos + i]) & 0x3F);
  }
  pos += length;
  return code_point;
}

void AppendCodePoint(char32_t code_point, std::string& out) {
  const auto continuation = [&](int shift) {
    out.push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3F)));
  };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0 | code_point >> 6));
    continuation(0);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | code_point >> 12));
    continuation(6);
    continuation(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | code_point >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

void LossyUtf8Decoder::Add(std::string_view bytes, std::string& out) {
  std::string joined;
  if (num_held_ > 0) {
    joined.assign(held_, num_held_);
    joined.append(bytes);
    bytes = joined;
    num_held_ = 0;
  }
  while (!bytes.empty()) {
    const Sequence sequence = SequenceAt(bytes);
    if (sequence.kind == SequenceKind::kIncomplete) {
      num_held_ = bytes.size();
      std::copy(bytes.begin(), bytes.end(), held_);
      return;
    }
    const bool valid = sequence.kind == SequenceKind::kValid;
    out.append(valid ? bytes.substr(0, sequence.size) : kReplacementCharacter);
    bytes.remove_prefix(sequence.size);
  }
}

void LossyUtf8Decoder::Finish(std::string& out) {
  if (num_held_ > 0) out.append(kReplacementCharacter);
  num_held_ = 0;
}

}  // namespace deepinfer
