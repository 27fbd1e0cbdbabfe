// A step of the engine, from choosing tokens to their text, allocates nothing for a request that
// has been admitted.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "engine/batch_engine.h"
#include "tests/allocations/allocation_count.h"

namespace deepinfer {
namespace {

class Silent : public RequestListener {
 public:
  void OnFinish(Result<GenerationResult> /*result*/) override { finished = true; }

  bool finished = false;
};

TEST(EngineAllocationsTest, StepsOfAdmittedRequestsAllocateNothing) {
  Result<std::unique_ptr<ModelInstance>> model =
      ModelInstance::Load({.dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano", .max_sequences = 3});
  ASSERT_TRUE(model.ok()) << model.status().message();
  BatchEngine engine(**model);
  std::array<Silent, 3> listeners;
  for (int i = 0; i < 3; ++i) {
    std::vector<int32_t> prompt(static_cast<size_t>(140 + i), 40 + i);
    GenerationRequest request{.prompt = TextRows(prompt),
                              .stop = {"never said", "nor this"},
                              .max_tokens = 300,
                              .ignore_eos = true};
    request.sampling = {.temperature = i == 0 ? 0.0 : 1.5,
                        .top_k = i == 1 ? 50 : 0,
                        .top_p = 0.95,
                        .repetition_penalty = 1.1,
                        .frequency_penalty = 0.5,
                        .logit_bias = {{7, -5.0f}},
                        .seed = 3,
                        .num_logprobs = i};
    ASSERT_TRUE(engine.Submit(std::move(request), listeners[static_cast<size_t>(i)]).ok());
  }
  // The table of KV blocks doubles as it grows; between 257 and 512 tokens it does not.
  for (int step = 0; step < 130; ++step) ASSERT_TRUE(engine.Step().ok());
  const int64_t before = AllocationCount();
  for (int step = 0; step < 100; ++step) ASSERT_TRUE(engine.Step().ok());
  EXPECT_EQ(AllocationCount() - before, 0);
  EXPECT_FALSE(listeners[0].finished);
}

}  // namespace
}  // namespace deepinfer
