// The limits that the AVX2 kernels can reach at most.  A bf16 dot is two FMAs of eight lanes here.
#include <immintrin.h>

#include "kernels/isa_tables.h"

namespace deepinfer {
namespace avx2 {
namespace {

constexpr int kChains = 12;  // of 16 registers

int64_t Bf16Dots(int64_t rounds) {
  __m256 acc[kChains];
#pragma GCC unroll 12
  for (__m256& chain : acc) chain = _mm256_setzero_ps();
  const __m256 ones = _mm256_set1_ps(1.0f);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (__m256& chain : acc) {
      chain = _mm256_fmadd_ps(ones, ones, chain);
      asm volatile("" : "+x"(chain));
    }
  }
  return rounds * kChains * 8;
}

int64_t Int8Dots(int64_t rounds) {
  __m256i acc[kChains];
#pragma GCC unroll 12
  for (__m256i& chain : acc) chain = _mm256_setzero_si256();
  __m256i bytes = _mm256_set1_epi8(1);
  const __m256i words = _mm256_set1_epi16(1);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (__m256i& chain : acc) {
      asm volatile("" : "+x"(bytes));
      const __m256i pairs = _mm256_maddubs_epi16(bytes, bytes);
      chain = _mm256_add_epi32(chain, _mm256_madd_epi16(pairs, words));
      asm volatile("" : "+x"(chain));  // or GCC drops the chains that nobody reads
    }
  }
  return rounds * kChains * 32;
}

void Read(const std::byte* data, size_t bytes) {
  __m256i seen[8];
#pragma GCC unroll 8
  for (__m256i& vector : seen) vector = _mm256_setzero_si256();
  for (size_t at = 0; at < bytes; at += 256) {
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) {
      const auto* source = reinterpret_cast<const __m256i*>(data + at + 32 * k);
      seen[k] = _mm256_or_si256(seen[k], _mm256_load_si256(source));
    }
  }
#pragma GCC unroll 8
  for (__m256i& vector : seen) asm volatile("" : : "x"(vector));
}

}  // namespace
}  // namespace avx2

PeakLoops Avx2Peaks() {
  return {.bf16_dots = avx2::Bf16Dots, .int8_dots = avx2::Int8Dots, .read = avx2::Read};
}

}  // namespace deepinfer
