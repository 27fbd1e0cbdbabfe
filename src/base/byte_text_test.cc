#include "base/byte_text.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(ByteTextTest, NumbersAreWrittenForPeople) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(-1234567), "-1,234,567");
  EXPECT_EQ(Grouped(-123), "-123");
  EXPECT_EQ(ShortBytes(999), "999 B");
  EXPECT_EQ(ShortBytes(1000), "1.00 kB");
  EXPECT_EQ(ShortBytes(999'600), "1.00 MB");
  EXPECT_EQ(ShortBytes(510'286'023'000), "510 GB");
}

}  // namespace
}  // namespace deepinfer
