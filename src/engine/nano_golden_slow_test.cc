#include "engine/nano_golden.h"

namespace deepinfer {
namespace {

TEST_F(NanoGoldenTest, LongPromptsGiveThePublishedLogitsAndClearTokens) {
  EXPECT_GT(CheckCases(64, 100000), 50);
}

}  // namespace
}  // namespace deepinfer
