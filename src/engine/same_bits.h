// Test support: runs of the same tokens that must give the same bits, however they are cut.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/generator.h"
#include "engine/model_instance.h"

namespace deepinfer {

// Logits of every position, and the state's bytes after the last one.
struct RunBits {
  std::vector<float> logits;  // [tokens, vocab_size]
  std::string state;

  friend bool operator==(const RunBits& a, const RunBits& b) {
    return a.state == b.state && std::ranges::equal(std::as_bytes(std::span(a.logits)),
                                                    std::as_bytes(std::span(b.logits)));
  }
};

inline std::unique_ptr<ModelInstance> LoadOrDie(const ModelOptions& options) {
  Result<std::unique_ptr<ModelInstance>> model = ModelInstance::Load(options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *std::move(model) : nullptr;
}

inline std::vector<int32_t> RandomTokens(int64_t count, int64_t vocab_size, uint64_t seed) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = Philox(seed, {static_cast<uint32_t>(i), 0, 0, 0})[0];
    tokens.push_back(static_cast<int32_t>(word % static_cast<uint64_t>(vocab_size)));
  }
  return tokens;
}

// Feeds the rows in chunks; logits of all of them.
inline RunBits RunInChunks(ModelInstance& model, std::span<const BatchRow> rows, int64_t chunk) {
  SequenceState state = model.NewSequence();
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  RunBits bits;
  bits.logits.resize(rows.size() * vocab);
  for (size_t begin = 0; begin < rows.size(); begin += static_cast<size_t>(chunk)) {
    const size_t count = std::min(static_cast<size_t>(chunk), rows.size() - begin);
    std::vector<int32_t> wanted(count);
    for (size_t i = 0; i < count; ++i) wanted[i] = static_cast<int32_t>(i);
    const SequenceSlice slice{.state = &state, .num_rows = static_cast<int64_t>(count)};
    EXPECT_TRUE(
        model.transformer()
            .Forward(
                model.context(),
                {.rows = rows.subspan(begin, count), .slices = {&slice, 1}, .logit_rows = wanted},
                {.logits = bits.logits.data() + begin * vocab})
            .ok());
  }
  bits.state = state.Serialize(model.identity());
  return bits;
}

}  // namespace deepinfer
