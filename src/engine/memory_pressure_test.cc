// Many requests in memory for a few: all of them end, with the bits they have alone.
#include <gtest/gtest.h>

#include <deque>

#include "engine/batch_engine.h"
#include "engine/run_stepper.h"
#include "engine/same_bits.h"

namespace deepinfer {
namespace {

constexpr int kRequests = 40;

class MemoryPressureTest : public testing::Test {
 protected:
  // Sequences have at most 2 blocks.
  static constexpr int64_t kLen = 250;

  static std::unique_ptr<ModelInstance> Load(int64_t max_sequences, int64_t blocks) {
    // 105 bytes a token, and what tables need for a block.
    const int64_t block_bytes = 105 * kBlockTokens + 32;
    return LoadOrDie({.dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano",
                      .kv_cache_memory = blocks * block_bytes,
                      .max_model_len = kLen,
                      .max_sequences = max_sequences});
  }

  // Lengths that cross a block in the prompt, in the answer, or nowhere.
  static GenerationRequest Request(const ModelInstance& model, int i) {
    GenerationRequest request{
        .prompt = TextRows(
            RandomTokens(20 + 37 * i % 200, model.config().vocab_size, static_cast<uint64_t>(i))),
        .max_tokens = 4 + i % 9,
        .ignore_eos = true,
        .prefill = {.mode = static_cast<PrefillMode>(i % 4)},
        .chunk = i % 3 == 0 ? 100 : 0};
    request.sampling.seed = static_cast<uint64_t>(i);
    request.sampling.temperature = i % 2 == 0 ? 0 : 1;
    return request;
  }

  static const std::vector<std::vector<int32_t>>& TokensAlone(ModelInstance& model) {
    static std::vector<std::vector<int32_t>> tokens;
    for (int i = static_cast<int>(tokens.size()); i < kRequests; ++i) {
      const Result<GenerationResult> result = Generate(model, Request(model, i), {});
      EXPECT_TRUE(result.ok()) << result.status().message();
      tokens.push_back(result.ok() ? result->tokens : std::vector<int32_t>());
    }
    return tokens;
  }
};

TEST_F(MemoryPressureTest, TheEngineEndsFortyRequestsInMemoryForFour) {
  const std::unique_ptr<ModelInstance> model = Load(4, 4 * 3);
  ASSERT_NE(model, nullptr);
  const std::vector<std::vector<int32_t>>& alone = TokensAlone(*model);
  BatchEngine engine(*model);
  std::vector<KeepingListener> listeners(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(engine.Submit(Request(*model, i), listeners[static_cast<size_t>(i)]).ok());
  }
  while (!engine.idle()) {
    ASSERT_TRUE(engine.Step().ok());
    ASSERT_TRUE(model->pool().CheckIntegrity());
  }
  for (size_t i = 0; i < alone.size(); ++i) {
    ASSERT_TRUE(listeners[i].result.ok()) << listeners[i].result.status().message();
    EXPECT_EQ(listeners[i].result->tokens, alone[i]) << "request " << i;
  }
  EXPECT_EQ(model->pool().num_in_use(), 0);
}

TEST_F(MemoryPressureTest, TheEnginePreemptsAndEveryRequestEndsWithTheTokensItHasAlone) {
  // Eight at a time in eight blocks.
  const std::unique_ptr<ModelInstance> model = Load(8, 8);
  ASSERT_NE(model, nullptr);
  const std::vector<std::vector<int32_t>>& alone = TokensAlone(*model);
  BatchEngine engine(*model);
  std::vector<KeepingListener> listeners(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    GenerationRequest request = Request(*model, i);
    request.priority = i % 4;
    ASSERT_TRUE(engine.Submit(std::move(request), listeners[static_cast<size_t>(i)]).ok());
    if (i % 3 == 0) {
      ASSERT_TRUE(engine.Step().ok());
    }
  }
  while (!engine.idle()) {
    ASSERT_TRUE(engine.Step().ok());
    ASSERT_TRUE(model->pool().CheckIntegrity());
  }
  int64_t preemptions = 0;
  for (size_t i = 0; i < alone.size(); ++i) {
    ASSERT_TRUE(listeners[i].result.ok()) << listeners[i].result.status().message();
    EXPECT_EQ(listeners[i].result->tokens, alone[i]) << "request " << i;
    preemptions += listeners[i].result->num_preemptions;
  }
  EXPECT_GT(preemptions, 3);
  EXPECT_EQ(model->pool().num_in_use(), 0);
  EXPECT_EQ(model->set_aside().used(), 0);
}

// The simplest scheduler that can: the latest admitted gives its blocks to the ones before it, in
// turns whole and as tokens, and returns when there is room.
class LatestGivesWay {
 public:
  explicit LatestGivesWay(ModelInstance& model) : model_(model), stepper_(model) {}

  // Runs to the end.  Subjects have the order of their arrival.
  void Run(std::deque<Subject*> waiting, size_t most_running) {
    while (!waiting.empty() || !running_.empty()) {
      while (!waiting.empty() && running_.size() < most_running && Admit(*waiting.front())) {
        waiting.pop_front();
      }
      ASSERT_FALSE(running_.empty());
      while (Missing() > 0) {
        ASSERT_GT(running_.size(), 1u) << "one alone must fit";
        SetAside(*running_.back());
        waiting.push_front(running_.back());
        running_.pop_back();
      }
      ASSERT_TRUE(stepper_.Step(running_).ok());
      ASSERT_TRUE(model_.pool().CheckIntegrity());
      std::erase_if(running_, [](Subject* subject) {
        if (!subject->run.finished()) return false;
        subject->run.Deliver();
        return true;
      });
    }
  }

  int64_t preemptions() const { return preemptions_; }

 private:
  bool Admit(Subject& subject) {
    if (subject.run.is_set_aside()) {
      const bool room = subject.run.BlocksToResume() <= model_.pool().num_free();
      if (!room || !subject.run.Resume().ok()) return false;
    }
    running_.push_back(&subject);
    return true;
  }

  // Blocks that the next step of all lacks.
  int64_t Missing() const {
    int64_t wanted = 0;
    for (const Subject* subject : running_) {
      wanted += subject->run.BlocksToReserve(Stepper::RowsOf(subject->run));
    }
    return wanted - model_.pool().num_free();
  }

  void SetAside(Subject& subject) {
    const bool whole = preemptions_++ % 2 == 0 && subject.run.SetAside(SetAsideKind::kWhole).ok();
    if (!whole) {
      ASSERT_TRUE(subject.run.SetAside(SetAsideKind::kTokens).ok());
    }
  }

  ModelInstance& model_;
  Stepper stepper_;
  std::vector<Subject*> running_;  // in order of admission
  int64_t preemptions_ = 0;
};

TEST_F(MemoryPressureTest, RequestsThatArePreemptedOverAndOverEndWithTheTokensTheyHaveAlone) {
  // Eight at a time in eight blocks.
  const std::unique_ptr<ModelInstance> model = Load(8, 8);
  ASSERT_NE(model, nullptr);
  const std::vector<std::vector<int32_t>>& alone = TokensAlone(*model);
  std::vector<std::unique_ptr<Subject>> subjects;
  std::deque<Subject*> waiting;
  for (int i = 0; i < kRequests; ++i) {
    subjects.push_back(std::make_unique<Subject>(*model, Request(*model, i)));
    waiting.push_back(subjects.back().get());
  }
  LatestGivesWay scheduler(*model);
  scheduler.Run(waiting, 8);
  EXPECT_GT(scheduler.preemptions(), 20);
  for (size_t i = 0; i < alone.size(); ++i) {
    ASSERT_TRUE(subjects[i]->listener.result.ok());
    EXPECT_EQ(subjects[i]->listener.result->tokens, alone[i]) << "request " << i;
  }
  subjects.clear();
  EXPECT_EQ(model->pool().num_in_use(), 0);
  EXPECT_EQ(model->set_aside().used(), 0);
}

}  // namespace
}  // namespace deepinfer
