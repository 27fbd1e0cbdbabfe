#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

// How many bytes a character with this first byte has, and the range of its second byte.
struct Lead {
  size_t length;  // 0: no character begins so
  unsigned char second_low;
  unsigned char second_high;
};

Lead LeadOf(unsigned char first) {
  if (first < 0x80) return {1, 0, 0};
  if (first >= 0xC2 && first <= 0xDF) return {2, 0x80, 0xBF};
  if (first == 0xE0) return {3, 0xA0, 0xBF};
  if (first == 0xED) return {3, 0x80, 0x9F};
  if (first >= 0xE1 && first <= 0xEF) return {3, 0x80, 0xBF};
  if (first == 0xF0) return {4, 0x90, 0xBF};
  if (first >= 0xF1 && first <= 0xF3) return {4, 0x80, 0xBF};
  if (first == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step NextUtf8(std::string_view text) {
  const Lead lead = LeadOf(static_cast<unsigned char>(text[0]));
  if (lead.length == 0) return {.kind = Utf8Step::Kind::kInvalid, .length = 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {.kind = Utf8Step::Kind::kIncomplete, .length = i};
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {.kind = Utf8Step::Kind::kInvalid, .length = i};
  }
  return {.kind = Utf8Step::Kind::kCharacter, .length = lead.length};
}

size_t FirstInvalidUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.kind != Utf8Step::Kind::kCharacter) return at;
    at += step.length;
  }
  return std::string_view::npos;
}

std::string LossyUtf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = NextUtf8(text);
    if (step.kind == Utf8Step::Kind::kCharacter) {
      out.append(text.substr(0, step.length));
    } else {
      out.append(kReplacementCharacter);
    }
    text.remove_prefix(step.length);
  }
  return out;
}

}  // namespace deepinfer
