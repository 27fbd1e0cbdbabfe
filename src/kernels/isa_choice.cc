#include "kernels/isa_choice.h"

#include <fmt/format.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <string_view>

#include "kernels/exec_context.h"
#include "kernels/isa_tables.h"

namespace deepinfer {
namespace {

struct NamedFeature {
  CpuFeature bit;
  std::string_view name;  // as /proc/cpuinfo spells it, where it does
};
constexpr NamedFeature kNames[] = {
    {kCpuAvx2, "avx2"},
    {kCpuFma, "fma"},
    {kCpuF16c, "f16c"},
    {kCpuAvx512F, "avx512f"},
    {kCpuAvx512Bw, "avx512bw"},
    {kCpuAvx512Vl, "avx512vl"},
    {kCpuAvx512Dq, "avx512dq"},
    {kCpuAvx512Vbmi, "avx512vbmi"},
    {kCpuAvx512Vnni, "avx512_vnni"},
    {kCpuAvx512Bf16, "avx512_bf16"},
    {kCpuBf16DotOrder, "a vdpbf16ps that adds odd before even products"},
};

std::string NamesOf(uint32_t features) {
  std::string names;
  for (const NamedFeature& feature : kNames) {
    if ((features & feature.bit) == 0) continue;
    names += names.empty() ? "" : ", ";
    names += feature.name;
  }
  return names;
}

}  // namespace

Isa BestIsa(uint32_t features) {
  if ((features & kCpuForAvx512) == kCpuForAvx512) return Isa::kAvx512;
  if ((features & kCpuForAvx2) == kCpuForAvx2) return Isa::kAvx2;
  return Isa::kScalar;
}

std::string FallbackNote(uint32_t features) {
  switch (BestIsa(features)) {
    case Isa::kAvx512:
      return "";
    case Isa::kAvx2: {
      if ((features & kCpuAvx512F) == 0) return "";
      uint32_t missing = kCpuForAvx512 & ~features;
      // Without the instruction there is nothing to try out.
      if ((missing & kCpuAvx512Bf16) != 0) missing &= ~uint32_t{kCpuBf16DotOrder};
      return fmt::format(
          "this processor has AVX-512 but lacks {}: computing with avx2, at about half the speed",
          NamesOf(missing));
    }
    case Isa::kScalar:
      return fmt::format(
          "this processor lacks {}: computing with scalar code, which is many times slower",
          NamesOf(kCpuForAvx2 & ~features));
  }
  return "";
}

#if defined(__x86_64__)
namespace {

// Clang 14 has no name for it in __builtin_cpu_supports.  Whether the system keeps its registers is
// told by avx2, which is needed too.
bool HasF16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

uint32_t DetectCpuFeatures() {
  uint32_t features = 0;
  const auto add = [&](int present, CpuFeature bit) {
    if (present != 0) features |= bit;
  };
  add(__builtin_cpu_supports("avx2"), kCpuAvx2);
  add(__builtin_cpu_supports("fma"), kCpuFma);
  add(static_cast<int>(HasF16c()), kCpuF16c);
  add(__builtin_cpu_supports("avx512f"), kCpuAvx512F);
  add(__builtin_cpu_supports("avx512bw"), kCpuAvx512Bw);
  add(__builtin_cpu_supports("avx512vl"), kCpuAvx512Vl);
  add(__builtin_cpu_supports("avx512dq"), kCpuAvx512Dq);
  add(__builtin_cpu_supports("avx512vbmi"), kCpuAvx512Vbmi);
  add(__builtin_cpu_supports("avx512vnni"), kCpuAvx512Vnni);
  add(__builtin_cpu_supports("avx512bf16"), kCpuAvx512Bf16);
  constexpr uint32_t kToTryIt = kCpuForAvx512 & ~uint32_t{kCpuBf16DotOrder};
  if ((features & kToTryIt) == kToTryIt) {
    constexpr int64_t kVectors = 32;  // 512 lanes
    const FlushDenormals flush;
    add(CountBf16DotMismatches(1, kVectors) == 0, kCpuBf16DotOrder);
  }
  return features;
}
#else
uint32_t DetectCpuFeatures() { return 0; }
#endif

}  // namespace deepinfer
