// Every instruction set, every way of splitting the work and every number of threads give the bits
// of the scalar kernels.
#include "tests/kernel_cases/kernel_cases.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/exec_context.h"
#include "kernels/select.h"

namespace deepinfer {
namespace {

// Outputs are long: says whether they are equal, not what they are.
testing::AssertionResult SameBits(const CaseOutput& found, const CaseOutput& expected) {
  if (found == expected) return testing::AssertionSuccess();
  size_t differ = found.bytes.size() == expected.bytes.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(found.bytes.size(), expected.bytes.size()); ++i) {
    differ += found.bytes[i] != expected.bytes[i] ? 1 : 0;
  }
  return testing::AssertionFailure()
         << differ << " of " << expected.bytes.size() << " bytes differ";
}

TEST(KernelCasesTest, EveryIsaGivesTheScalarBits) {
  for (const KernelCase& item : KernelCases()) {
    const CaseOutput expected = item.run({.table = ScalarKernels()});
    EXPECT_FALSE(expected.bytes.empty()) << item.name;
    for (const KernelTable* table : SupportedKernels()) {
      EXPECT_TRUE(SameBits(item.run({.table = *table}), expected))
          << table->name << ": " << item.name;
    }
  }
}

TEST(KernelCasesTest, FiniteInputsNeverGiveNan) {
  for (const KernelTable* table : SupportedKernels()) {
    for (const KernelCase& item : KernelCases()) {
      EXPECT_EQ(item.run({.table = *table}).nans, 0) << table->name << ": " << item.name;
    }
  }
}

TEST(KernelCasesTest, HowTheWorkIsSplitDoesNotChangeABit) {
  for (const KernelTable* table : SupportedKernels()) {
    for (const KernelCase& item : KernelCases()) {
      const CaseOutput expected = item.run({.table = *table});
      for (const int64_t grain : {1, 3, 32}) {
        EXPECT_TRUE(SameBits(item.run({.table = *table, .grain = grain}), expected))
            << table->name << ": " << item.name << ", grain " << grain;
      }
    }
  }
}

TEST(KernelCasesTest, OpsGiveTheSameBitsOnAnyNumberOfThreads) {
  for (const KernelTable* table : SupportedKernels()) {
    for (int threads = 1; threads <= 4; ++threads) {
      ExecContext context(*table, threads);
      for (const KernelCase& item : KernelCases()) {
        const CaseOutput expected = item.run({.table = *table});
        EXPECT_TRUE(SameBits(item.run({.table = *table, .context = &context}), expected))
            << table->name << ": " << item.name << ", " << threads << " threads";
      }
    }
  }
}

TEST(KernelCasesTest, NamesAreDistinct) {
  std::set<std::string> names;
  for (const KernelCase& item : KernelCases()) {
    EXPECT_TRUE(names.insert(item.name).second) << item.name;
  }
}

}  // namespace
}  // namespace deepinfer
