#include "engine/nano_golden.h"

namespace deepinfer {
namespace {

TEST_F(NanoGoldenTest, ShortPromptsGiveThePublishedLogitsAndClearTokens) {
  EXPECT_GT(CheckCases(1, 64), 100);
}

}  // namespace
}  // namespace deepinfer
