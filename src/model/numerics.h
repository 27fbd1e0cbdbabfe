// The two arithmetics of a run (docs/formats/numerics.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace deepinfer {

enum class Numerics : uint8_t {
  kRelease,  // quantised activations and caches, bf16 roundings: what the model is meant to run
             // with
  kFp32,     // no activation is rounded or quantised; for checking against references
};

// Names the arithmetic in fingerprints, block keys and hand-offs.
constexpr std::string_view NumericsId(Numerics numerics) {
  return numerics == Numerics::kRelease ? "v41-release-1" : "v41-fp32-1";
}

}  // namespace deepinfer
