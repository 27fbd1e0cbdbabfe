#include "tensor/row_codec.h"

#include <cstring>

#include "tensor/bf16.h"
#include "tensor/quant.h"

namespace deepinfer {
namespace {

void EncodeFp8(std::span<const float> row, uint8_t* out) {
  uint8_t* scales = out + row.size();
  for (size_t at = 0; at < row.size(); at += kFp8Group) {
    const std::span<const float> group = row.subspan(at, kFp8Group);
    const uint8_t scale = Fp8Scale(group);
    const float divisor = DecodeE8M0(scale);
    for (size_t i = 0; i < group.size(); ++i) out[at + i] = EncodeE4M3(group[i] / divisor);
    scales[at / kFp8Group] = scale;
  }
}

// Two codes to a byte; `divisor` is the group's scale.
void EncodeFp4Group(std::span<const float> group, float divisor, uint8_t* out) {
  for (size_t i = 0; i < group.size(); i += 2) {
    const uint8_t low = EncodeE2M1(group[i] / divisor);
    const uint8_t high = EncodeE2M1(group[i + 1] / divisor);
    out[i / 2] = static_cast<uint8_t>(low | high << 4);
  }
}

void EncodeFp4(std::span<const float> row, uint8_t* out) {
  uint8_t* scales = out + row.size() / 2;
  for (size_t at = 0; at < row.size(); at += kFp4Group) {
    const std::span<const float> group = row.subspan(at, kFp4Group);
    scales[at / kFp4Group] = Fp4Scale(group);
    EncodeFp4Group(group, DecodeE8M0(scales[at / kFp4Group]), out + at / 2);
  }
}

void EncodeLatent(std::span<const float> row, uint8_t* out) {
  uint8_t* scales = out + row.size() / 2;
  for (size_t at = 0; at < row.size(); at += kLatentGroup) {
    const std::span<const float> group = row.subspan(at, kLatentGroup);
    scales[at / kLatentGroup] = LatentScale(group);
    EncodeFp4Group(group, DecodeE4M3(scales[at / kLatentGroup]), out + at / 2);
  }
}

}  // namespace

void EncodeRow(RowFormat format, std::span<const float> row, std::byte* out) {
  auto* bytes = reinterpret_cast<uint8_t*>(out);
  switch (format) {
    case RowFormat::kF32:
      std::memcpy(out, row.data(), row.size_bytes());
      return;
    case RowFormat::kFp8E8M0:
      EncodeFp8(row, bytes);
      return;
    case RowFormat::kFp4E8M0:
      EncodeFp4(row, bytes);
      return;
    case RowFormat::kFp4E4M3:
      EncodeLatent(row, bytes);
      return;
  }
}

void DecodeRow(RowFormat format, const std::byte* row, std::span<float> out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(row);
  const size_t dim = out.size();
  switch (format) {
    case RowFormat::kF32:
      std::memcpy(out.data(), row, out.size_bytes());
      return;
    case RowFormat::kFp8E8M0:
      for (size_t i = 0; i < dim; ++i) {
        out[i] = kE4M3Values[bytes[i]] * DecodeE8M0(bytes[dim + i / kFp8Group]);
      }
      return;
    case RowFormat::kFp4E8M0:
      for (size_t i = 0; i < dim; ++i) {
        out[i] = kE2M1Values[NibbleOf(bytes, static_cast<int64_t>(i))] *
                 DecodeE8M0(bytes[dim / 2 + i / kFp4Group]);
      }
      return;
    case RowFormat::kFp4E4M3:
      for (size_t i = 0; i < dim; ++i) {
        out[i] = kE2M1Values[NibbleOf(bytes, static_cast<int64_t>(i))] *
                 kE4M3Values[bytes[dim / 2 + i / kLatentGroup]];
      }
      return;
  }
}

}  // namespace deepinfer
