#include "tokenizer/byte_level.h"

#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

bool StandsForItself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

// Code point of each byte; all are below U+0144.
std::array<int, 256> CodePoints() {
  std::array<int, 256> points{};
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    points[static_cast<size_t>(byte)] = StandsForItself(byte) ? byte : next++;
  }
  return points;
}

constexpr int kNumPoints = 0x144;

}  // namespace

const std::array<std::string, 256>& ByteSpellings() {
  static const std::array<std::string, 256> spellings = [] {
    std::array<std::string, 256> out;
    const std::array<int, 256> points = CodePoints();
    for (size_t byte = 0; byte < 256; ++byte) {
      const int point = points[byte];
      if (point < 0x80) {
        out[byte] = static_cast<char>(point);
      } else {
        out[byte] += static_cast<char>(0xC0 | point >> 6);
        out[byte] += static_cast<char>(0x80 | (point & 0x3F));
      }
    }
    return out;
  }();
  return spellings;
}

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  static const std::array<int, kNumPoints> byte_of = [] {
    std::array<int, kNumPoints> out{};
    out.fill(-1);
    const std::array<int, 256> points = CodePoints();
    for (size_t byte = 0; byte < 256; ++byte) {
      out[static_cast<size_t>(points[byte])] = static_cast<int>(byte);
    }
    return out;
  }();
  std::string bytes;
  while (!spelling.empty()) {
    const Utf8Step step = NextUtf8(spelling);
    if (step.kind != Utf8Step::Kind::kCharacter || step.length > 2) return std::nullopt;
    const auto first = static_cast<unsigned char>(spelling[0]);
    const int point = step.length == 1
                          ? first
                          : (first & 0x1F) << 6 | (static_cast<unsigned char>(spelling[1]) & 0x3F);
    if (point >= kNumPoints || byte_of[static_cast<size_t>(point)] < 0) return std::nullopt;
    bytes += static_cast<char>(byte_of[static_cast<size_t>(point)]);
    spelling.remove_prefix(step.length);
  }
  return bytes;
}

}  // namespace deepinfer
