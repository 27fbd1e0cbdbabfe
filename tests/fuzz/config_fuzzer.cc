// Text of a config.json -> a configuration whose layer map and manifest can be walked, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/config.h"
#include "model/manifest.h"

namespace {

// Configurations far larger than any model would only make the fuzzer slow.
bool IsSmall(const deepinfer::ModelConfig& c) {
  return int64_t{c.num_layers} * c.num_experts < 20000 && c.draft_num_experts < 5000 &&
         c.vision.num_layers < 1000;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = deepinfer::ModelConfig::Parse({reinterpret_cast<const char*>(data), size});
  if (!config.ok()) return 0;
  for (int layer = 0; layer < config->num_layers; ++layer) {
    if (config->KindOf(layer) == deepinfer::LayerKind::kWindow) continue;
    CHECK_LE(config->KvSourceOf(layer), layer);
    CHECK_LE(config->IndexSourceOf(layer), layer);
    CHECK_GE(config->IndexSourceOf(layer), config->KvSourceOf(layer));
  }
  if (!IsSmall(*config)) return 0;
  for (const deepinfer::ManifestEntry& entry : deepinfer::ManifestOf(*config)) {
    CHECK_GT(entry.spec.num_elements(), 0);
  }
  return 0;
}
