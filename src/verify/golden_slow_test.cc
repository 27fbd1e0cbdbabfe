#include <gtest/gtest.h>

#include <algorithm>

#include "verify/golden.h"

namespace deepinfer {
namespace {

class GoldenFolderTest : public testing::TestWithParam<const char*> {};

TEST_P(GoldenFolderTest, EveryRecordedCaseIsReproduced) {
  const Path dir = Path(DEEPINFER_SOURCE_DIR) / "tests/golden" / GetParam();
  const Result<std::vector<GoldenLine>> lines = VerifyGolden({.dir = dir}, nullptr);
  ASSERT_TRUE(lines.ok()) << lines.status().message();
  EXPECT_GE(lines->size(), 6u);
  for (const GoldenLine& line : *lines) {
    EXPECT_TRUE(line.ok) << line.tag << " " << line.check << ": " << line.first;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, GoldenFolderTest, testing::Values("tiny", "wide"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace deepinfer
