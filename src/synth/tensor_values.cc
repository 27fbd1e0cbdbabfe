#include "synth/tensor_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/random.h"
#include "tensor/bf16.h"
#include "tensor/fp4.h"
#include "tensor/fp8.h"
#include "weights/checkpoint.h"

namespace deepinfer {
namespace {

constexpr int64_t kScaleBlock = 32;
// Random bytes behind one block of output: one call of the generator.
constexpr size_t kRandomBytes = sizeof(PhiloxBlock);
constexpr double kSqrt3 = 1.7320508075688772;

// A random byte as an e4m3 code: sign, and a magnitude uniform over (0, 4).
constexpr std::array<uint8_t, 256> kFp8Codes = [] {
  std::array<uint8_t, 256> codes{};
  for (int byte = 0; byte < 256; ++byte) {
    const float magnitude = (static_cast<float>(byte & 0x7F) + 0.5f) / 32;
    codes[static_cast<size_t>(byte)] = static_cast<uint8_t>((byte & 0x80) | EncodeE4M3(magnitude));
  }
  return codes;
}();

// Mean squares of the codes, before any scale.
constexpr double kFp8MeanSquare = [] {
  double sum = 0;
  for (const uint8_t code : kFp8Codes) sum += double{DecodeE4M3(code)} * DecodeE4M3(code);
  return sum / 256;
}();
constexpr double kFp4MeanSquare = [] {
  double sum = 0;
  for (const float value : kE2M1Values) sum += double{value} * value;
  return sum / 16;
}();

uint64_t HashOf(std::string_view name) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

bool EndsWithAny(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [name](std::string_view ending) { return name.ends_with(ending); });
}

bool IsNormWeight(std::string_view name) {
  return EndsWithAny(
      name, {"norm.weight", "norm1.weight", "norm2.weight", "engram.q_weight", "engram.k_weight"});
}

struct Range {
  double centre;
  double spread;
};

// Of a tensor that is stored as plain numbers.
Range RangeOf(const TensorSpec& spec) {
  const std::string_view name = spec.name;
  if (IsNormWeight(name)) return {1, 0.2};
  if (EndsWithAny(name, {"hc_attn_scale", "hc_ffn_scale"})) return {1, 0.5};
  if (EndsWithAny(name, {"hc_attn_base", "hc_ffn_base"})) return {0, 0.9};
  if (EndsWithAny(name, {"attn_sink"})) return {0, 0.8};
  if (EndsWithAny(name, {"gate.bias", "gate.bias_vl"})) return {0, 0.2};
  // Rows of tables, and single rows that stand for tokens.
  const bool is_row = name == "embed.weight" || name.ends_with("markov_head.embed.weight") ||
                      name.starts_with("image_");
  if (is_row) return {0, kSqrt3};
  if (spec.shape.size() < 2) return {0, 0.1};  // biases
  return {0, kSqrt3 / std::sqrt(static_cast<double>(spec.shape.back()))};
}

// Mean square that the weights of a scale plane are to have.
double WantedMeanSquare(const TensorSpec& spec) {
  if (IsNgramTable(spec.name)) return 1;
  return 1.0 / static_cast<double>(spec.shape.back() * kScaleBlock);
}

}  // namespace

TensorValues::TensorValues(uint64_t seed, const TensorSpec& spec)
    : seed_(seed), name_hash_(HashOf(spec.name)) {
  switch (spec.dtype) {
    case DType::kBf16:
    case DType::kF32: {
      rule_ = spec.dtype == DType::kBf16 ? Rule::kBf16 : Rule::kF32;
      const Range range = RangeOf(spec);
      centre_ = static_cast<float>(range.centre);
      spread_ = static_cast<float>(range.spread);
      return;
    }
    case DType::kF8E4M3:
      rule_ = Rule::kFp8Codes;
      return;
    case DType::kF8E8M0: {
      rule_ = Rule::kScales;
      // A power of two alone may miss the wanted size by half; a mixture of two neighbours meets it
      // on average: 4^e * (1 + 3p) = ratio, 1 <= ratio / 4^e < 4.
      double ratio =
          WantedMeanSquare(spec) / (IsRoutedExpert(spec.name) ? kFp4MeanSquare : kFp8MeanSquare);
      int exponent = 0;
      for (; ratio >= 4; ratio /= 4) ++exponent;
      for (; ratio < 1; ratio *= 4) --exponent;
      scale_ = static_cast<uint8_t>(127 + exponent);
      raise_below_ = static_cast<uint32_t>((ratio - 1) / 3 * 65536);
      return;
    }
    default:
      rule_ = Rule::kBytes;  // two E2M1 codes a byte: every code is good
  }
}

void TensorValues::Fill(uint64_t offset, std::span<std::byte> out) const {
  CHECK_EQ(offset % kGranule, 0u);
  // Bytes of output that one call of the generator feeds.
  const size_t block_bytes = rule_ == Rule::kScales ? kRandomBytes / 2 : kRandomBytes;
  uint64_t block = offset / block_bytes;
  for (size_t at = 0; at < out.size(); at += block_bytes, ++block) {
    FillBlock(block, out.subspan(at, std::min(block_bytes, out.size() - at)));
  }
}

void TensorValues::FillBlock(uint64_t block, std::span<std::byte> out) const {
  const PhiloxBlock random =
      Philox(seed_, {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                     static_cast<uint32_t>(name_hash_), static_cast<uint32_t>(name_hash_ >> 32)});
  std::array<uint8_t, kRandomBytes> bytes;
  const auto half = [&](size_t i) {  // 16 random bits
    return random[i / 2] >> (i % 2 * 16) & 0xFFFF;
  };
  switch (rule_) {
    case Rule::kBytes:
    case Rule::kFp8Codes:
      for (size_t i = 0; i < kRandomBytes; ++i) {
        const auto byte = static_cast<uint8_t>(random[i / 4] >> (i % 4 * 8));
        bytes[i] = rule_ == Rule::kBytes ? byte : kFp8Codes[byte];
      }
      break;
    case Rule::kScales:
      for (size_t i = 0; i < kRandomBytes / 2; ++i) {
        bytes[i] = static_cast<uint8_t>(scale_ + (half(i) < raise_below_ ? 1 : 0));
      }
      break;
    case Rule::kBf16:
      for (size_t i = 0; i < kRandomBytes / 2; ++i) {
        const float unit = (static_cast<float>(half(i)) - 32767.5f) / 32768;  // (-1, 1)
        const uint16_t value = FloatToBf16(centre_ + spread_ * unit);
        std::memcpy(bytes.data() + 2 * i, &value, sizeof value);
      }
      break;
    case Rule::kF32:
      for (size_t i = 0; i < kRandomBytes / 4; ++i) {
        // 24 bits are exact in a float.
        const float unit = (static_cast<float>(random[i] >> 8) - 8388607.5f) / 8388608;
        const float value = centre_ + spread_ * unit;
        std::memcpy(bytes.data() + 4 * i, &value, sizeof value);
      }
      break;
  }
  std::memcpy(out.data(), bytes.data(), out.size());
}

}  // namespace deepinfer
