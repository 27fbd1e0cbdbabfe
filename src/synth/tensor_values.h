// Seeded random values for the tensors of a made-up checkpoint.
//
// Sizes are such that activations neither explode nor vanish: matrices have a root mean square of
// 1/sqrt(inputs), norm weights lie around 1, embeddings and n-gram rows around a root mean square
// of 1, hyper-connection mixes near those of a trained model.  The bytes of a tensor depend on the
// seed and its name alone: not on its place, its neighbours or the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weights/safetensors_writer.h"

namespace deepinfer {

// Fills consecutive parts of one tensor.  Not thread-safe.
class TensorValues {
 public:
  // Granule of Fill: parts begin at multiples of it.
  static constexpr int64_t kGranule = 64;

  TensorValues(uint64_t seed, const TensorSpec& spec);

  // The bytes [offset, offset + out.size()) of the tensor.  Precondition: offset is a multiple of
  // kGranule.
  void Fill(uint64_t offset, std::span<std::byte> out) const;

 private:
  enum class Rule : uint8_t { kBytes, kFp8Codes, kScales, kBf16, kF32 };

  void FillBlock(uint64_t block, std::span<std::byte> out) const;

  Rule rule_ = Rule::kBytes;
  uint64_t seed_;
  uint64_t name_hash_;
  float centre_ = 0;  // kBf16, kF32: uniform in centre +- spread
  float spread_ = 0;
  uint8_t scale_ = 0;         // kScales: this byte, or the next one up
  uint32_t raise_below_ = 0;  // kScales: ... for random 16-bit numbers below this
};

}  // namespace deepinfer
