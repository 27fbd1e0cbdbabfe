#include "bench/bench_data.h"

#include <cstring>

#include "base/check.h"
#include "base/random.h"

namespace deepinfer {
namespace {

constexpr uint8_t kScale = 120;  // 2^-7
// Of the largest matrix that is asked for: one scale per 32 values.
constexpr size_t kScaleBytes = size_t{129280} * 5120 / 32;
// Clears the upper exponent bits of each byte, so that the bytes are small e4m3 numbers, e2m1 pairs
// and bf16 words of moderate size alike.
constexpr uint64_t kCodes = 0xB7B7B7B7B7B7B7B7;

}  // namespace

WeightPool::WeightPool(size_t bytes) : memory_(bytes), scales_(kScaleBytes, kScale) {
  uint64_t state = 1;
  for (size_t at = 0; at + 8 <= bytes; at += 8) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth, MMIX
    const uint64_t codes = (state ^ state >> 29) & kCodes;
    std::memcpy(memory_.data() + at, &codes, sizeof codes);
  }
}

WeightView WeightPool::Next(WeightFormat format, int64_t n, int64_t k) {
  const auto values = static_cast<size_t>(n * k);
  const size_t bytes = format == WeightFormat::kFp4    ? values / 2
                       : format == WeightFormat::kFp8  ? values
                       : format == WeightFormat::kBf16 ? values * 2
                                                       : values * 4;
  CHECK_LE(bytes, memory_.size());
  if (at_ + bytes > memory_.size()) at_ = 0;
  const std::byte* data = memory_.data() + at_;
  at_ += (bytes + 63) / 64 * 64;
  const bool scaled = format == WeightFormat::kFp4 || format == WeightFormat::kFp8;
  return {
      .format = format, .data = data, .scales = scaled ? scales_.data() : nullptr, .n = n, .k = k};
}

std::vector<float> BenchActivations(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t word = Philox(3, {static_cast<uint32_t>(i), 0, 0, 0})[0];
    values[i] = static_cast<float>(static_cast<int32_t>(word)) * 0x1p-31f;
  }
  return values;
}

}  // namespace deepinfer
