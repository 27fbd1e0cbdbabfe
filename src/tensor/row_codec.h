// Rows of a cache, encoded and decoded one by one: the scalar definition of every RowFormat.
// Byte diagrams: docs/formats/kv-rows.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/rows_view.h"

namespace deepinfer {

// Quantises a row of values into RowBytes(format, row.size()) bytes.
void EncodeRow(RowFormat format, std::span<const float> row, std::byte* out);

// The values of a stored row; all but kF32 are exact bf16 numbers.
void DecodeRow(RowFormat format, const std::byte* row, std::span<float> out);

}  // namespace deepinfer
