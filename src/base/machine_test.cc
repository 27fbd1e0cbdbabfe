#include "base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <vector>

namespace deepinfer {
namespace {

TEST(MachineTest, LimitsAreThoseOfSomeRealMachine) {
  const MachineLimits limits = ReadMachineLimits();
  EXPECT_GE(limits.cpus, 1);
  EXPECT_LE(limits.cpus, 1 << 14);
  EXPECT_GT(limits.memory_bytes, uint64_t{1} << 26);
  EXPECT_LT(limits.memory_bytes, uint64_t{1} << 50);
}

TEST(MachineTest, PeakMemoryGrowsWithWhatIsTouched) {
  const uint64_t before = PeakMemoryBytes();
  EXPECT_GT(before, uint64_t{1} << 20);
  constexpr size_t kBytes = size_t{64} << 20;
  const std::vector<char> touched(kBytes, 'x');
  EXPECT_GE(PeakMemoryBytes(), before + kBytes / 2) << touched[kBytes / 2];
}

TEST(MachineTest, AffinityMaskLimitsTheCpus) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(ReadMachineLimits().cpus, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(ProcessorNameTest, IsOneLineOfText) {
  EXPECT_FALSE(ProcessorName().empty());
  EXPECT_EQ(ProcessorName().find_first_of("\n\t:"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
