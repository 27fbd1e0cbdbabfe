// What the op bodies of this folder are written in.  One body serves every instruction set: it is
// a template over V, the lanes type of avx2/lanes.h or avx512/lanes.h, whose vectors have the
// widths of docs/formats/numerics.md whatever the registers have:
//
//   V::F32  16 fp32 lanes     V::I32  16 int32 lanes     V::Mask    one bool per lane of these
//   V::F64   8 fp64 lanes                                V::Mask64  one bool per lane of F64
//
// Only included by files that are compiled for one instruction set.  Templates over V are different
// functions for each of them; everything else here is always inlined, and nothing of the standard
// library is instantiated, or the linker could hand one set's code to the callers of another.
#pragma once

#include <cstdint>

namespace deepinfer::vector {

inline constexpr int64_t kLanes = 16;
inline constexpr int64_t kSumLanes = 8;

// Which lanes a load or a store touches: all, or the first `count` (1..15); the other lanes of a
// load are zeros.
struct Whole {};
struct First {
  int64_t count;
};

// body(at, part) for every 16 of n elements.
template <class Body>
[[gnu::always_inline]] inline void ForEachVector(int64_t n, const Body& body) {
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) body(at, Whole{});
  if (at < n) body(at, First{n - at});
}

// x is a result of arithmetic: not subnormal.
template <class V>
[[gnu::always_inline]] inline typename V::F32 Round(typename V::F32 x, bool round) {
  return round ? RoundToBf16(x) : x;
}

// Adds 16 terms, each exact in fp64, to the 8 lanes of a sum (numerics.md section 4).
template <class V>
[[gnu::always_inline]] inline typename V::F64 AddTerms(typename V::F64 sum, typename V::F32 terms) {
  return (sum + Low(terms)) + High(terms);
}

// The same for 16 products: exact in fp64, so that a fused step rounds as two do.
template <class V>
[[gnu::always_inline]] inline typename V::F64 AddProducts(typename V::F64 sum, typename V::F32 a,
                                                          typename V::F32 b) {
  return Fma(High(a), High(b), Fma(Low(a), Low(b), sum));
}

// x . w over fp32 values.
template <class V>
[[gnu::always_inline]] inline float DotF32(const float* x, const float* w, int64_t n) {
  using F32 = typename V::F32;
  auto sum = V::F64::Zero();
  ForEachVector(n, [&](int64_t at, auto part) {
    sum = AddProducts<V>(sum, F32::Load(x + at, part), F32::Load(w + at, part));
  });
  return SumTree(sum);
}

// rsqrt(x), rounded once.
[[gnu::always_inline]] inline float InverseSqrt(float x) {
  return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x)));
}

// rsqrt of the mean of n squares.
[[gnu::always_inline]] inline float InverseRms(float sum_of_squares, int64_t n, float eps) {
  return InverseSqrt(sum_of_squares * (1.0f / static_cast<float>(n)) + eps);
}

}  // namespace deepinfer::vector
