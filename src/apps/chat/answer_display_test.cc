#include "apps/chat/answer_display.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/file.h"
#include "tests/support/scratch_dir.h"

namespace deepinfer {
namespace {

std::string Shown(const std::string& think_end, const std::vector<std::string>& pieces) {
  const ScratchDir scratch;
  const Path path = scratch / "out";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  EXPECT_GE(fd, 0);
  Output out(fd);
  AnswerDisplay display(out, think_end);
  for (const std::string& piece : pieces) EXPECT_TRUE(display.Show(piece).ok());
  EXPECT_TRUE(display.Finish().ok());
  close(fd);
  Result<std::string> shown = ReadFile(path);
  EXPECT_TRUE(shown.ok());
  return shown.ok() ? *std::move(shown) : "";
}

TEST(AnswerDisplayTest, AnAnswerWithoutThinkingIsShownAsItIs) {
  EXPECT_EQ(Shown("", {"Hel", "lo </think>"}), "Hello </think>\n");
  EXPECT_EQ(Shown("", {}), "");
}

TEST(AnswerDisplayTest, ThinkingIsMarkedHoweverItsEndIsCut) {
  const std::string expected = "<think>\nhm < a\n</think>\nYes.\n";
  EXPECT_EQ(Shown("</think>", {"hm < a</think>Yes."}), expected);
  EXPECT_EQ(Shown("</think>", {"hm <", " a<", "/thi", "nk>Y", "es."}), expected);
}

TEST(AnswerDisplayTest, AThoughtThatWasCutShortIsEnded) {
  EXPECT_EQ(Shown("</think>", {"hm", " </th"}), "<think>\nhm </th\n</think>\n");
}

}  // namespace
}  // namespace deepinfer
