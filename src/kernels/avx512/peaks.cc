// The limits that the AVX-512 kernels can reach at most.
#include <immintrin.h>

#include "kernels/isa_tables.h"

namespace deepinfer {
namespace avx512 {
namespace {

constexpr int kChains = 24;  // as many as the largest register tile of a matrix product

int64_t Bf16Dots(int64_t rounds) {
  __m512 acc[kChains];
#pragma GCC unroll 24
  for (__m512& chain : acc) chain = _mm512_setzero_ps();
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3F80));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (__m512& chain : acc) {
      chain = _mm512_dpbf16_ps(chain, ones, ones);
      asm volatile("" : "+v"(chain));
    }
  }
  return rounds * kChains * 32;
}

int64_t Int8Dots(int64_t rounds) {
  __m512i acc[kChains];
#pragma GCC unroll 24
  for (__m512i& chain : acc) chain = _mm512_setzero_si512();
  const __m512i ones = _mm512_set1_epi8(1);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (__m512i& chain : acc) {
      chain = _mm512_dpbusd_epi32(chain, ones, ones);
      asm volatile("" : "+v"(chain));
    }
  }
  return rounds * kChains * 64;
}

void Read(const std::byte* data, size_t bytes) {
  __m512i seen[8];
#pragma GCC unroll 8
  for (__m512i& vector : seen) vector = _mm512_setzero_si512();
  for (size_t at = 0; at < bytes; at += 512) {
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) {
      seen[k] = _mm512_or_si512(seen[k], _mm512_load_si512(data + at + 64 * k));
    }
  }
#pragma GCC unroll 8
  for (__m512i& vector : seen) asm volatile("" : : "v"(vector));
}

}  // namespace
}  // namespace avx512

PeakLoops Avx512Peaks() {
  return {.bf16_dots = avx512::Bf16Dots, .int8_dots = avx512::Int8Dots, .read = avx512::Read};
}

}  // namespace deepinfer
