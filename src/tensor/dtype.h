// Element types of stored tensors, as safetensors spells them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace deepinfer {

enum class DType : uint8_t {
  kF32,     // "F32"
  kBf16,    // "BF16"
  kF8E4M3,  // "F8_E4M3": OCP e4m3fn, no infinities, 0x7F and 0xFF are NaN
  kF8E8M0,  // "F8_E8M0": 2^(byte - 127), 0xFF is NaN
  kI8,      // "I8": as a weight, two packed E2M1 codes (low nibble = even column)
  kU8,      // "U8"
  kBool,    // "BOOL"
  kI32,     // "I32"
  kI64,     // "I64"
  kF16,     // "F16": recognised so that errors can name it, never used
  kF64,     // "F64": likewise
};

struct DTypeInfo {
  std::string_view name;
  int bytes;
};

constexpr DTypeInfo InfoOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {"F32", 4};
    case DType::kBf16:
      return {"BF16", 2};
    case DType::kF8E4M3:
      return {"F8_E4M3", 1};
    case DType::kF8E8M0:
      return {"F8_E8M0", 1};
    case DType::kI8:
      return {"I8", 1};
    case DType::kU8:
      return {"U8", 1};
    case DType::kBool:
      return {"BOOL", 1};
    case DType::kI32:
      return {"I32", 4};
    case DType::kI64:
      return {"I64", 8};
    case DType::kF16:
      return {"F16", 2};
    case DType::kF64:
      return {"F64", 8};
  }
  return {"?", 0};
}

inline constexpr DType kAllDTypes[] = {DType::kF32, DType::kBf16, DType::kF8E4M3, DType::kF8E8M0,
                                       DType::kI8,  DType::kU8,   DType::kBool,   DType::kI32,
                                       DType::kI64, DType::kF16,  DType::kF64};

// Empty for a name that is not in the list.
constexpr std::optional<DType> DTypeFromName(std::string_view name) {
  for (DType dtype : kAllDTypes) {
    if (InfoOf(dtype).name == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace deepinfer
