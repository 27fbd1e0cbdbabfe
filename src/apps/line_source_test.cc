#include "apps/line_source.h"

#include <gtest/gtest.h>

#include "tests/support/run_deepinfer.h"

namespace deepinfer {
namespace {

std::vector<SourceLine> LinesOf(const std::string& content) {
  const ScratchDir scratch;
  WriteText(scratch / "lines", content);
  Result<LineSource> source = LineSource::Open(scratch / "lines");
  EXPECT_TRUE(source.ok());
  std::vector<SourceLine> lines;
  while (true) {
    Result<std::optional<SourceLine>> line = source->Next();
    EXPECT_TRUE(line.ok());
    if (!line.ok() || !line->has_value()) return lines;
    lines.push_back(*std::move(*line));
  }
}

TEST(LineSourceTest, EndsOfLinesAndTheByteOrderMarkAreLeftOut) {
  const std::vector<SourceLine> lines = LinesOf("\xEF\xBB\xBFone\r\n\ntwo \xEF\xBB\xBF\r\nthree");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].text, "one");
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[2].text, "two \xEF\xBB\xBF");
  EXPECT_EQ(lines[3].text, "three");
  EXPECT_EQ(lines[3].number, 4);
  EXPECT_TRUE(LinesOf("").empty());
  EXPECT_EQ(LinesOf("\n").size(), 1u);
}

TEST(LineSourceTest, LinesLongerThanABufferAreWhole) {
  const std::string longer(300000, 'x');
  const std::vector<SourceLine> lines = LinesOf("a\n" + longer + "\nb\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[1].text == longer);
  EXPECT_EQ(lines[2].text, "b");
}

TEST(LineSourceTest, ALineBeyondTheLimitIsCutAndTheNextOneIsRead) {
  for (const size_t extra : {size_t{1}, size_t{200000}}) {
    const std::vector<SourceLine> lines =
        LinesOf("a\n" + std::string(kMaxLineBytes + extra, 'x') + "\nb\n");
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_TRUE(lines[1].cut);
    EXPECT_FALSE(lines[2].cut);
    EXPECT_EQ(lines[2].text, "b");
    EXPECT_EQ(lines[2].number, 3);
  }
}

TEST(LineSourceTest, AMissingFileIsNamed) {
  const Status status = LineSource::Open("/no/such/file").status();
  EXPECT_EQ(status.message(), "/no/such/file: cannot open: No such file or directory");
}

}  // namespace
}  // namespace deepinfer
