// Whether vdpbf16ps is the dot product of docs/formats/numerics.md section 2.
#include "kernels/avx512/lanes.h"
#include "kernels/isa_tables.h"

namespace deepinfer {
namespace {

using avx512::F32;
using avx512::I32;
using avx512::Whole;

// SplitMix64 (Steele, Lea, Flood, 2014).
uint32_t NextBits(uint64_t& state) {
  uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return static_cast<uint32_t>((z ^ z >> 31) >> 32);
}

// A finite fp32 with any sign and fraction, whose exponent field is near `center` (mod 255): sums
// of numbers far apart would show nothing.
uint32_t NextFloat(uint64_t& state, uint32_t center) {
  const uint32_t exponent = (center + NextBits(state) % 25) % 255;
  return (NextBits(state) & 0x807FFFFF) | exponent << 23;
}

// One lane's operands: two bf16 each, and what they are added to.
struct Operands {
  uint32_t x[16];
  uint32_t w[16];
  uint32_t acc[16];
};

void Fill(uint64_t& state, Operands& out) {
  for (int i = 0; i < 16; ++i) {
    const uint32_t cx = NextBits(state) % 255;
    const uint32_t cw = NextBits(state) % 255;
    const uint32_t product = cx + cw < 127 ? 0 : cx + cw - 127;
    const uint32_t even_x = NextFloat(state, cx) >> 16;
    const uint32_t even_w = NextFloat(state, cw) >> 16;
    out.x[i] = (NextFloat(state, cx) & 0xFFFF0000) | even_x;
    out.w[i] = (NextFloat(state, cw) & 0xFFFF0000) | even_w;
    out.acc[i] = NextFloat(state, product % 255);
    if (NextBits(state) % 32 == 0) out.acc[i] &= 0x80000000;
    if (NextBits(state) % 32 == 0) out.x[i] &= 0x8000FFFF;
  }
}

}  // namespace

int64_t CountBf16DotMismatches(uint64_t seed, int64_t vectors) {
  int64_t mismatches = 0;
  for (int64_t v = 0; v < vectors; ++v) {
    alignas(64) Operands in;
    Fill(seed, in);
    const I32 x = I32::Load(in.x, Whole{});
    const I32 w = I32::Load(in.w, Whole{});
    const F32 acc = F32::Load(reinterpret_cast<const float*>(in.acc), Whole{});
    const F32 dot = {
        _mm512_dpbf16_ps(acc.v, std::bit_cast<__m512bh>(x.v), std::bit_cast<__m512bh>(w.v))};
    const I32 upper = I32::Set(static_cast<int>(0xFFFF0000));
    const F32 odd = Fma(FromBits(x & upper), FromBits(w & upper), acc);
    const F32 expected = Fma(FromBits(ShiftLeft<16>(x)), FromBits(ShiftLeft<16>(w)), odd);
    const uint32_t equal = ToBits(Bits(dot) == Bits(expected));
    const uint32_t both_nan = ToBits(IsNan(dot)) & ToBits(IsNan(expected));
    mismatches += 16 - __builtin_popcount(equal | both_nan);
  }
  return mismatches;
}

}  // namespace deepinfer
