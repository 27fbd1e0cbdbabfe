// Which instruction set a processor gets, from its features alone.
#pragma once

#include <cstdint>
#include <string>

namespace deepinfer {

// Bits of what a processor has.
enum CpuFeature : uint32_t {
  kCpuAvx2 = 1U << 0,
  kCpuFma = 1U << 1,
  kCpuAvx512F = 1U << 2,
  kCpuAvx512Bw = 1U << 3,
  kCpuAvx512Vl = 1U << 4,
  kCpuAvx512Dq = 1U << 5,
  kCpuAvx512Vbmi = 1U << 6,
  kCpuAvx512Vnni = 1U << 7,
  kCpuAvx512Bf16 = 1U << 8,
  // vdpbf16ps computes what docs/formats/numerics.md section 2 says: tried out, not announced.
  kCpuBf16DotOrder = 1U << 9,
  kCpuF16c = 1U << 10,
};
inline constexpr uint32_t kCpuForAvx2 = kCpuAvx2 | kCpuFma | kCpuF16c;
inline constexpr uint32_t kCpuForAvx512 = kCpuForAvx2 | kCpuAvx512F | kCpuAvx512Bw | kCpuAvx512Vl |
                                          kCpuAvx512Dq | kCpuAvx512Vbmi | kCpuAvx512Vnni |
                                          kCpuAvx512Bf16 | kCpuBf16DotOrder;

enum class Isa : uint8_t { kScalar, kAvx2, kAvx512 };  // slowest first

// The best set whose features are all there; each includes those before it.
Isa BestIsa(uint32_t features);

// For an x86-64 processor that has a part of a faster set: one line that names what it lacks and
// the set that runs instead.  Empty when nothing is lost: AVX-512 runs, or is not there at all.
std::string FallbackNote(uint32_t features);

// Of the processor that this runs on; 0 where it is no x86-64.
uint32_t DetectCpuFeatures();

}  // namespace deepinfer
