// Activation packing and matrix products.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/column_order.h"
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/scalar.h"
#include "kernels/workspace.h"
#include "tensor/fp4.h"
#include "tensor/fp8.h"
#include "tensor/quant.h"

namespace deepinfer::scalar {
namespace {

// act_quant: x[0..k) becomes q * s, group by group.
void QuantizeRow(const float* x, int64_t k, float* out) {
  for (int64_t at = 0; at < k; at += kFp8Group) {
    const float scale = DecodeE8M0(Fp8Scale({x + at, static_cast<size_t>(kFp8Group)}));
    for (int64_t i = at; i < at + kFp8Group; ++i) {
      out[i] = kE4M3Values[EncodeE4M3(x[i] / scale)] * scale;
    }
  }
}

// Every order repeats after 128 columns at the latest.
constexpr int64_t kGroup = 128;
using GroupTable = std::array<uint8_t, kGroup>;

// Where a column of a group goes in a packed row.
constexpr GroupTable MakePlaces(ColumnOrder order) {
  GroupTable places{};
  for (int64_t at = 0; at < kGroup; ++at) {
    places[static_cast<size_t>(ColumnAt(order, at))] = static_cast<uint8_t>(at);
  }
  return places;
}
constexpr GroupTable kNaturalPlaces = MakePlaces(ColumnOrder::kNatural);
constexpr GroupTable kFp8Places = MakePlaces(ColumnOrder::kFp8);
constexpr GroupTable kFp4Places = MakePlaces(ColumnOrder::kFp4);

// The same for a row kept in lane order.
constexpr GroupTable MakeSlots(GroupTable places) {
  for (uint8_t& place : places) place = static_cast<uint8_t>(LaneSlot(place));
  return places;
}
constexpr GroupTable kNaturalSlots = MakeSlots(kNaturalPlaces);
constexpr GroupTable kFp8Slots = MakeSlots(kFp8Places);
constexpr GroupTable kFp4Slots = MakeSlots(kFp4Places);

const GroupTable& PlacesOf(ColumnOrder order) {
  return order == ColumnOrder::kFp8   ? kFp8Places
         : order == ColumnOrder::kFp4 ? kFp4Places
                                      : kNaturalPlaces;
}

// Exponents that the code values of a format can have, from those of its scales.
ExponentRange ScaledRange(const uint8_t* scales, int64_t count, int lowest, int highest) {
  const auto [min, max] = std::minmax_element(scales, scales + count);
  return {.min = *min + lowest, .max = *max + highest};
}

// A code's value times its scale; both zeros are +0.
inline float Scaled(float value, float scale) { return value * scale + 0.0f; }

// Row n of a weight in lane order; padding is left as it is.
ExponentRange DecodeBf16Row(const WeightView& w, int64_t n, float* out) {
  const uint16_t* row = static_cast<const uint16_t*>(w.data) + n * w.k;
  ExponentRange range;
  float values[kGroup];
  for (int64_t at = 0; at < w.k; at += kGroup) {
    const int64_t count = std::min(kGroup, w.k - at);
    for (int64_t i = 0; i < count; ++i) values[i] = Bf16ToFloat(row[at + i]);
    for (int64_t i = 0; i < count; ++i) out[at + kNaturalSlots[static_cast<size_t>(i)]] = values[i];
    range.Join(RangeOf(values, count));
  }
  return range;
}

ExponentRange DecodeFp8Row(const WeightView& w, int64_t n, float* out) {
  const uint8_t* row = static_cast<const uint8_t*>(w.data) + n * w.k;
  const uint8_t* scales = w.scales + n / 32 * (w.k / 32);
  for (int64_t at = 0; at < w.k; at += 32) {
    const float scale = DecodeE8M0(scales[at / 32]);
    const uint8_t* slots = kFp8Slots.data() + at % kGroup;
    float* group = out + at / kGroup * kGroup;
    for (int64_t i = 0; i < 32; ++i) group[slots[i]] = Scaled(kE4M3Values[row[at + i]], scale);
  }
  return ScaledRange(scales, w.k / 32, -9, 8);  // 2^-9 .. 448
}

ExponentRange DecodeFp4Row(const WeightView& w, int64_t n, float* out) {
  const uint8_t* row = static_cast<const uint8_t*>(w.data) + n * (w.k / 2);
  const uint8_t* scales = w.scales + n * (w.k / 32);
  for (int64_t at = 0; at < w.k; at += 32) {
    const float scale = DecodeE8M0(scales[at / 32]);
    const uint8_t* slots = kFp4Slots.data() + at % kGroup;
    float* group = out + at / kGroup * kGroup;
    for (int64_t i = 0; i < 32; i += 2) {
      const uint8_t pair = row[(at + i) / 2];
      group[slots[i]] = Scaled(kE2M1Values[pair & 15], scale);
      group[slots[i + 1]] = Scaled(kE2M1Values[pair >> 4], scale);
    }
  }
  return ScaledRange(scales, w.k / 32, -1, 2);  // 0.5 .. 6
}

ExponentRange DecodeOperandRow(const WeightView& w, int64_t n, float* out) {
  switch (w.format) {
    case WeightFormat::kBf16:
      return DecodeBf16Row(w, n, out);
    case WeightFormat::kFp8:
      return DecodeFp8Row(w, n, out);
    case WeightFormat::kFp4:
      return DecodeFp4Row(w, n, out);
    case WeightFormat::kF32:
      break;
  }
  CHECK(false);
  return {};
}

// Row n of a weight as fp32 values in natural order.
void DecodeF32Row(const WeightView& w, int64_t n, float* out) {
  const int64_t k = w.k;
  switch (w.format) {
    case WeightFormat::kF32: {
      const float* row = static_cast<const float*>(w.data) + n * k;
      std::copy(row, row + k, out);
      return;
    }
    case WeightFormat::kBf16: {
      const uint16_t* row = static_cast<const uint16_t*>(w.data) + n * k;
      for (int64_t i = 0; i < k; ++i) out[i] = Bf16ToFloat(row[i]);
      return;
    }
    case WeightFormat::kFp8: {
      const uint8_t* row = static_cast<const uint8_t*>(w.data) + n * k;
      const uint8_t* scales = w.scales + n / 32 * (k / 32);
      for (int64_t i = 0; i < k; ++i) out[i] = kE4M3Values[row[i]] * DecodeE8M0(scales[i / 32]);
      return;
    }
    case WeightFormat::kFp4: {
      const uint8_t* row = static_cast<const uint8_t*>(w.data) + n * (k / 2);
      const uint8_t* scales = w.scales + n * (k / 32);
      for (int64_t i = 0; i < k; ++i) {
        out[i] = kE2M1Values[NibbleOf(row, i)] * DecodeE8M0(scales[i / 32]);
      }
      return;
    }
  }
}

// A packed row as fp32 values in lane order.
ExponentRange WidenRow(const uint16_t* packed, int64_t stride, float* out) {
  for (int64_t at = 0; at < stride; at += kOperand) {
    for (int64_t i = 0; i < kLanes; ++i) {
      out[at + i] = Bf16ToFloat(packed[at + 2 * i + 1]);
      out[at + kLanes + i] = Bf16ToFloat(packed[at + 2 * i]);
    }
  }
  return RangeOf(out, stride);
}

int64_t SourceRow(const MatmulParams& p, int64_t i) {
  return p.x_index != nullptr ? p.x_index[i] : i;
}

void MatmulF32(const MatmulParams& p, int64_t begin, int64_t end) {
  const int64_t k = p.w.k;
  static thread_local Workspace workspace;
  auto* w = workspace.Array<float>(k);
  for (int64_t n = begin; n < end; ++n) {
    DecodeF32Row(p.w, n, w);
    for (int64_t i = 0; i < p.m; ++i) {
      const float* x = static_cast<const float*>(p.x) + SourceRow(p, i) * k;
      p.y[i * p.y_stride + n] = Round(DotF32(x, w, k), p.round);
    }
  }
}

// Rows that are multiplied while a decoded weight row is at hand: 32 rows of 5,120 fp32 values are
// 640 KiB and stay in the second-level cache.
constexpr int64_t kRowTile = 32;

}  // namespace

void Pack(const PackParams& p, int64_t begin, int64_t end) {
  const int64_t stride = PackedStride(p.order, p.k);
  const GroupTable& places = PlacesOf(p.order);
  static thread_local Workspace workspace;
  auto* values = workspace.Array<float>(p.k);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.x_stride;
    if (p.quantize) {
      QuantizeRow(x, p.k, values);
      x = values;
    }
    uint16_t* out = p.out + row * stride;
    if (p.k < stride) std::fill_n(out, stride, uint16_t{0});
    for (int64_t i = 0; i < p.k; ++i) {
      out[i / kGroup * kGroup + places[static_cast<size_t>(i % kGroup)]] = FloatToBf16(x[i]);
    }
  }
}

void Matmul(const MatmulParams& p, int64_t begin, int64_t end) {
  if (p.order == ColumnOrder::kF32) {
    MatmulF32(p, begin, end);
    return;
  }
  const int64_t stride = PackedStride(p.order, p.w.k);
  const int64_t tile = std::min(kRowTile, p.m);
  static thread_local Workspace workspace;
  auto* x = workspace.Array<float>(stride * (tile + 1));
  float* w = x + stride * tile;
  std::fill_n(w, stride, 0.0f);  // decoding leaves the padding as it is
  OperandRow rows[kRowTile];
  for (int64_t first = 0; first < p.m; first += tile) {
    const int64_t count = std::min(tile, p.m - first);
    for (int64_t i = 0; i < count; ++i) {
      float* row = x + i * stride;
      const auto* packed = static_cast<const uint16_t*>(p.x) + SourceRow(p, first + i) * stride;
      rows[i] = {.values = row, .range = WidenRow(packed, stride, row)};
    }
    for (int64_t n = begin; n < end; ++n) {
      const OperandRow column{.values = w, .range = DecodeOperandRow(p.w, n, w)};
      for (int64_t i = 0; i < count; ++i) {
        p.y[(first + i) * p.y_stride + n] = Round(DotOperands(rows[i], column, stride), p.round);
      }
    }
  }
}

}  // namespace deepinfer::scalar
