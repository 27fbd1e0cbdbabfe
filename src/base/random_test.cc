#include "base/random.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

// Known answers published with the Random123 library (kat_vectors, philox4x32 10 rounds).
TEST(RandomTest, PhiloxGivesThePublishedKnownAnswers) {
  EXPECT_EQ(Philox(0, {0, 0, 0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, UniformStaysInsideTheOpenInterval) {
  EXPECT_GT(UniformOpen(0, 0), 0.0);
  EXPECT_LT(UniformOpen(~0u, ~0u), 1.0);
}

}  // namespace
}  // namespace deepinfer
