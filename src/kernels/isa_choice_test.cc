#include "kernels/isa_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/exec_context.h"
#include "kernels/isa_tables.h"
#include "kernels/kernels.h"
#include "kernels/select.h"

namespace deepinfer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(IsaChoiceTest, TheBestSetThatIsWhollyThereIsChosen) {
  EXPECT_EQ(BestIsa(kCpuForAvx512), Isa::kAvx512);
  EXPECT_EQ(BestIsa(kCpuForAvx2), Isa::kAvx2);
  EXPECT_EQ(BestIsa(0), Isa::kScalar);
  EXPECT_EQ(FallbackNote(kCpuForAvx512), "");
}

TEST(IsaChoiceTest, EveryFeatureIsNeeded) {
  for (uint32_t bit = 1; bit <= kCpuForAvx512; bit <<= 1) {
    ASSERT_NE(kCpuForAvx512 & bit, 0U);
    const bool of_avx2 = (kCpuForAvx2 & bit) != 0;
    EXPECT_EQ(BestIsa(kCpuForAvx512 & ~bit), of_avx2 ? Isa::kScalar : Isa::kAvx2) << bit;
  }
}

TEST(IsaChoiceTest, APartOfAvx512IsToldWithWhatIsMissing) {
  // Cascade Lake has VNNI; neither VBMI nor BF16.
  constexpr uint32_t kCascadeLake =
      kCpuForAvx512 & ~(kCpuAvx512Vbmi | kCpuAvx512Bf16 | kCpuBf16DotOrder);
  EXPECT_THAT(FallbackNote(kCascadeLake),
              AllOf(HasSubstr("lacks avx512vbmi, avx512_bf16:"), HasSubstr("with avx2")));
  EXPECT_THAT(FallbackNote(kCpuForAvx512 & ~kCpuBf16DotOrder),
              AllOf(HasSubstr("vdpbf16ps"), HasSubstr("with avx2"), Not(HasSubstr("vbmi"))));
}

TEST(IsaChoiceTest, Avx2AloneLosesNothing) { EXPECT_EQ(FallbackNote(kCpuForAvx2), ""); }

TEST(IsaChoiceTest, ScalarCodeIsToldWithWhatIsMissing) {
  EXPECT_THAT(FallbackNote(kCpuAvx2), AllOf(HasSubstr("lacks fma, f16c:"), HasSubstr("scalar")));
  EXPECT_THAT(FallbackNote(0), AllOf(HasSubstr("lacks avx2, fma, f16c:"), HasSubstr("scalar")));
}

TEST(IsaChoiceTest, ThisMachineRunsWhatItsFeaturesAllow) {
  const size_t faster = static_cast<size_t>(BestIsa(DetectCpuFeatures()));
  EXPECT_EQ(SupportedKernels().size(), faster + 1);
}

#if defined(__x86_64__)
TEST(Bf16DotTest, TheInstructionAddsOddThenEvenProductsWithDenormalsFlushed) {
  if (BestIsa(DetectCpuFeatures() | kCpuBf16DotOrder) != Isa::kAvx512) {
    GTEST_SKIP() << "this processor has no AVX-512 with BF16";
  }
  const FlushDenormals flush;
  for (uint64_t seed = 2; seed < 6; ++seed) {
    constexpr int64_t kVectors = 25000;  // 4 * 400,000 lanes
    EXPECT_EQ(CountBf16DotMismatches(seed, kVectors), 0) << "seed " << seed;
  }
}

TEST(Bf16DotTest, TheCheckSeesLanesWhoseDenormalsAreKept) {
  if (BestIsa(DetectCpuFeatures()) != Isa::kAvx512) {
    GTEST_SKIP() << "this processor has no AVX-512 with BF16";
  }
  // Without flushing the fused steps keep subnormal results, the instruction never does.
  EXPECT_GT(CountBf16DotMismatches(2, 2000), 0);
}
#endif

}  // namespace
}  // namespace deepinfer
