#include "base/pages.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace deepinfer {
namespace {

TEST(PageBufferTest, IsZeroedAlignedAndWritableToItsEnd) {
  for (const size_t bytes : {size_t{1}, size_t{4097}, (size_t{2} << 20) + 5, size_t{5} << 20}) {
    const PageBuffer buffer(bytes);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0U);
    EXPECT_EQ(buffer.data()[bytes - 1], std::byte{0});
    buffer.data()[0] = buffer.data()[bytes - 1] = std::byte{1};
  }
}

TEST(PageBufferTest, AnEmptyOneHoldsNothing) {
  const PageBuffer none;
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(PageBuffer(0).size(), 0U);
}

TEST(PageBufferTest, MovingHandsTheMemoryOn) {
  PageBuffer first(100);
  std::byte* data = first.data();
  PageBuffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  PageBuffer third;
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 100U);
}

}  // namespace
}  // namespace deepinfer
