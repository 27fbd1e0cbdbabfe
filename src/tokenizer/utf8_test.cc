#include "tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

std::string Lossy(std::string_view bytes) {
  LossyUtf8Decoder decoder;
  std::string text;
  decoder.Add(bytes, text);
  decoder.Finish(text);
  return text;
}

TEST(Utf8Test, ReadsAndAppendsEveryScalarValue) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendCodePoint(c, text);
    ASSERT_EQ(FirstInvalidUtf8(text), std::nullopt);
    size_t pos = 0;
    ASSERT_EQ(ReadCodePoint(text, pos), c);
    ASSERT_EQ(pos, text.size());
    ASSERT_EQ(Lossy(text), text);
  }
}

TEST(Utf8Test, FindsTheFirstInvalidByte) {
  EXPECT_EQ(FirstInvalidUtf8("ok"), std::nullopt);
  EXPECT_EQ(FirstInvalidUtf8("a\x80"), 1u);
  EXPECT_EQ(FirstInvalidUtf8("a\xC0\x80"), 1u);
  EXPECT_EQ(FirstInvalidUtf8("ab\xED\xA0\x80"), 2u);
  EXPECT_EQ(FirstInvalidUtf8("\xF4\x90\x80\x80"), 0u);
  EXPECT_EQ(FirstInvalidUtf8("é\xF0\x9F\x98"), 2u);
}

// Values of Python's bytes.decode("utf-8", "replace").
TEST(Utf8Test, ReplacesMaximalSubparts) {
  EXPECT_EQ(Lossy("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(Lossy("\xF0\x9F\x41"), "\uFFFDA");
  EXPECT_EQ(Lossy("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Lossy("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Lossy("\xF5\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(Lossy("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFDA");
}

}  // namespace
}  // namespace deepinfer
