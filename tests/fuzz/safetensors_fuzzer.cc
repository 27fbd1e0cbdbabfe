// Bytes of a safetensors file -> a checked list of tensors or an error, never a crash, and never a
// tensor that reaches outside the file.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "weights/safetensors.h"

namespace {

// Every promise that the users of an entry rely on.
void CheckEntries(const std::vector<deepinfer::TensorEntry>& entries, uint64_t data_bytes) {
  uint64_t at = 0;
  for (const deepinfer::TensorEntry& entry : entries) {
    CHECK_EQ(entry.begin, at);
    CHECK_LE(entry.begin, entry.end);
    CHECK_LE(entry.end, data_bytes);
    uint64_t bytes = static_cast<uint64_t>(deepinfer::InfoOf(entry.dtype).bytes);
    for (const int64_t extent : entry.shape) {
      CHECK_GE(extent, 0);
      bytes *= static_cast<uint64_t>(extent);
    }
    CHECK_EQ(bytes, entry.end - entry.begin);
    at = entry.end;
  }
  CHECK_EQ(at, data_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first two bytes choose the size of the data section; the rest is the header's text.
  if (size < 2) return 0;
  uint16_t data_bytes = 0;
  std::memcpy(&data_bytes, data, sizeof data_bytes);
  const std::string_view header(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto entries = deepinfer::ParseSafetensorsHeader(header, data_bytes);
  if (entries.ok()) CheckEntries(*entries, data_bytes);
  return 0;
}
