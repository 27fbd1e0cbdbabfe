#include <bit>

#include "tensor/bf16.h"
#include "tensor/row_codec.h"
#include "tests/kernel_cases/case_parts.h"

namespace deepinfer {

uint32_t CaseInputs::Bits() {
  // SplitMix64 (Steele, Lea, Flood, 2014).
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return static_cast<uint32_t>((z ^ z >> 31) >> 32);
}

std::vector<float> CaseInputs::Floats(int64_t count, float scale) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) {
    // The sum of four uniforms in (-1, 1) has variance 4/3.
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += (static_cast<double>(Bits()) + 0.5) * 0x1p-31 - 1;
    value = static_cast<float>(sum * 0.866) * scale;
  }
  return out;
}

std::vector<float> CaseInputs::Bf16Floats(int64_t count, float scale) {
  std::vector<float> out = Floats(count, scale);
  for (float& value : out) value = RoundToBf16(value);
  return out;
}

std::vector<uint16_t> CaseInputs::Bf16(int64_t count, float scale) {
  std::vector<uint16_t> out;
  for (const float value : Floats(count, scale)) out.push_back(FloatToBf16(value));
  return out;
}

std::vector<float> CaseInputs::WideBf16Floats(int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) {
    const uint32_t exponent = 7 + static_cast<uint32_t>(Below(161));
    const uint32_t sign_and_fraction = Bits() & 0x807F;
    value = Bf16ToFloat(static_cast<uint16_t>(sign_and_fraction | exponent << 7));
    if (Below(16) == 0) value = 0;
  }
  return out;
}

std::vector<float> CaseInputs::ExtremeFloats(int64_t count, int max_exponent) {
  std::vector<float> out(static_cast<size_t>(count));
  const auto largest = static_cast<uint32_t>(126 + max_exponent);  // exponent field
  for (float& value : out) {
    const uint32_t kind = Bits() % 8;
    uint32_t exponent = 0;  // kinds 0 and 1: zeros and subnormals
    if (kind == 2) exponent = 1 + Bits() % 3;
    if (kind == 3) exponent = largest - Bits() % 4;
    if (kind > 3) exponent = 122 + Bits() % 10;
    const uint32_t fraction = kind == 0 ? 0 : Bits() & 0x7FFFFF;
    value = std::bit_cast<float>((Bits() & 0x80000000) | exponent << 23 | fraction);
  }
  return out;
}

std::vector<float> CaseInputs::ExtremeBf16Floats(int64_t count, int max_exponent) {
  std::vector<float> out = ExtremeFloats(count, max_exponent);
  for (float& value : out) {
    value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xFFFF0000);
  }
  return out;
}

std::vector<uint8_t> CaseInputs::Bytes(int64_t count) {
  std::vector<uint8_t> out(static_cast<size_t>(count));
  for (uint8_t& value : out) value = static_cast<uint8_t>(Bits());
  return out;
}

std::vector<uint8_t> CaseInputs::E4M3(int64_t count) {
  std::vector<uint8_t> out = Bytes(count);
  for (uint8_t& code : out) {
    if ((code & 0x7F) == 0x7F) code = 0;
  }
  return out;
}

std::vector<uint8_t> CaseInputs::Scales(int64_t count, int low, int high) {
  std::vector<uint8_t> out(static_cast<size_t>(count));
  for (uint8_t& scale : out) scale = static_cast<uint8_t>(low + Below(high - low + 1));
  return out;
}

const char* NameOf(ColumnOrder order) {
  constexpr const char* kNames[] = {"f32", "bf16", "fp8", "fp4"};
  return kNames[static_cast<int>(order)];
}

const char* NameOf(RowFormat format) {
  constexpr const char* kNames[] = {"f32", "fp8_e8m0", "fp4_e8m0", "fp4_e4m3"};
  return kNames[static_cast<int>(format)];
}

// `count` encoded rows.
std::vector<std::byte> EncodedRows(CaseInputs& in, RowFormat format, int64_t count, int64_t dim) {
  std::vector<std::byte> out(static_cast<size_t>(count * RowBytes(format, dim)));
  const FlushDenormals flush;
  for (int64_t i = 0; i < count; ++i) {
    EncodeRow(format, in.Bf16Floats(dim), out.data() + i * RowBytes(format, dim));
  }
  return out;
}

std::unique_ptr<BlockRows> MakeBlockRows(CaseInputs& in, RowFormat format, int64_t dim,
                                         int64_t count) {
  constexpr int64_t kPerBlock = 16;
  constexpr int64_t kOffset = 32;
  const int64_t row_bytes = RowBytes(format, dim);
  const int64_t blocks = (count + kPerBlock - 1) / kPerBlock;
  const int64_t block_bytes = kOffset + kPerBlock * row_bytes;
  auto rows = std::make_unique<BlockRows>();
  rows->bytes.resize(static_cast<size_t>(blocks * block_bytes));
  for (int64_t b = 0; b < blocks; ++b) {
    std::byte* base = rows->bytes.data() + (blocks - 1 - b) * block_bytes;
    const std::vector<std::byte> encoded = EncodedRows(in, format, kPerBlock, dim);
    std::copy(encoded.begin(), encoded.end(), base + kOffset);
    rows->table.push_back(base);
  }
  rows->view = {.blocks = rows->table.data(),
                .offset = kOffset,
                .entries_per_block = kPerBlock,
                .row_bytes = static_cast<int32_t>(row_bytes)};
  return rows;
}

}  // namespace deepinfer
