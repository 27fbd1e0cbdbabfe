#include "engine/batch_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "base/random.h"
#include "engine/generator.h"
#include "engine/reuse.h"
#include "engine/same_bits.h"

namespace deepinfer {
namespace {

// Keeps all that it hears.
class Recorder : public RequestListener {
 public:
  Status OnText(std::string_view piece) override {
    text += piece;
    return fail_at > 0 && ++pieces == fail_at ? IoError("the reader is gone") : Status::Ok();
  }
  void OnPrefill(int64_t done, int64_t /*total*/) override { prefill.push_back(done); }
  void OnFinish(Result<GenerationResult> finished) override {
    ++finishes;
    if (order != nullptr) order->push_back(this);
    result = std::move(finished);
  }

  std::string text;
  std::vector<int64_t> prefill;
  int finishes = 0;
  int pieces = 0;
  int fail_at = 0;                          // the piece whose delivery fails
  std::vector<Recorder*>* order = nullptr;  // of finishes
  Result<GenerationResult> result = Internal("not finished");
};

bool SameResult(const GenerationResult& a, const GenerationResult& b) {
  const auto same_floats = [](const std::vector<float>& x, const std::vector<float>& y) {
    return std::ranges::equal(std::as_bytes(std::span(x)), std::as_bytes(std::span(y)));
  };
  const bool same_top =
      a.top.size() == b.top.size() &&
      std::equal(a.top.begin(), a.top.end(), b.top.begin(), [](const auto& x, const auto& y) {
        return x.token == y.token && std::memcmp(&x.logprob, &y.logprob, sizeof x.logprob) == 0;
      });
  return a.tokens == b.tokens && a.text == b.text && a.finish_reason == b.finish_reason &&
         a.seed == b.seed && same_floats(a.logprobs, b.logprobs) && same_top;
}

class BatchEngineTest : public testing::Test {
 protected:
  static constexpr int64_t kRequests = 7;

  void SetUp() override {
    model_ = LoadOrDie({.dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano", .max_sequences = 4});
    ASSERT_NE(model_, nullptr);
  }

  std::vector<BatchRow> Prompt(int64_t len, uint64_t seed) {
    return TextRows(RandomTokens(len, model_->config().vocab_size, seed));
  }

  // Requests of every kind: greedy and sampled, short and long, penalised, with stop strings, in
  // all prefill modes.
  GenerationRequest Request(int64_t i) {
    GenerationRequest request{.prompt = Prompt(3 + 31 * i, 100 + static_cast<uint64_t>(i)),
                              .max_tokens = 5 + 3 * i,
                              .ignore_eos = true};
    request.sampling.temperature = i % 2 == 0 ? 0 : 0.9;
    request.sampling.seed = 1000 + static_cast<uint64_t>(i);
    request.sampling.num_logprobs = i % 3 == 0 ? 2 : -1;
    if (i % 3 == 1) request.sampling.repetition_penalty = 1.3;
    if (i == 5) request.stop = {"e", "the"};
    request.prefill.mode = static_cast<PrefillMode>(i % 4);
    request.chunk = i == 4 ? 50 : 0;
    return request;
  }

  std::vector<GenerationResult> Alone() {
    std::vector<GenerationResult> results;
    for (int64_t i = 0; i < kRequests; ++i) {
      Result<GenerationResult> result = Generate(*model_, Request(i), {});
      EXPECT_TRUE(result.ok()) << result.status().message();
      if (result.ok()) results.push_back(*std::move(result));
    }
    return results;
  }

  static void RunToTheEnd(BatchEngine& engine) {
    while (!engine.idle()) ASSERT_TRUE(engine.Step().ok());
  }

  std::unique_ptr<ModelInstance> model_;
};

TEST_F(BatchEngineTest, ARequestGivesTheSameBitsAloneAndBesideOthersInAnyOrder) {
  const std::vector<GenerationResult> alone = Alone();
  ASSERT_EQ(alone.size(), static_cast<size_t>(kRequests));
  for (const uint64_t shuffle : {0, 1, 2}) {
    for (const BatchLimits limits : {BatchLimits{}, BatchLimits{.max_sequences = 3},
                                     BatchLimits{.max_sequences = 4, .max_rows = 40}}) {
      std::vector<size_t> order(kRequests);
      std::iota(order.begin(), order.end(), size_t{0});
      for (size_t i = order.size() - 1; i > 0; --i) {
        std::swap(order[i],
                  order[Philox(shuffle, {static_cast<uint32_t>(i), 0, 0, 0})[0] % (i + 1)]);
      }
      BatchEngine engine(*model_, limits);
      std::vector<Recorder> recorders(kRequests);
      // Some come while others run.
      for (size_t i = 0; i < order.size(); ++i) {
        ASSERT_TRUE(
            engine.Submit(Request(static_cast<int64_t>(order[i])), recorders[order[i]]).ok());
        if (i < 3) continue;
        ASSERT_TRUE(engine.Step().ok());
      }
      RunToTheEnd(engine);
      for (size_t i = 0; i < recorders.size(); ++i) {
        ASSERT_TRUE(recorders[i].result.ok()) << recorders[i].result.status().message();
        EXPECT_TRUE(SameResult(*recorders[i].result, alone[i]))
            << "request " << i << ", order " << shuffle << ", rows " << limits.max_rows;
        EXPECT_EQ(recorders[i].text, alone[i].text);
        EXPECT_EQ(recorders[i].finishes, 1);
      }
    }
  }
}

// Neighbours of all lengths, a third of which end before their time.
TEST_F(BatchEngineTest, ARequestGivesTheSameBitsAmongThirtyTwoOthersWhateverThePlan) {
  const std::vector<GenerationResult> alone = Alone();
  model_ = LoadOrDie({.dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano", .max_sequences = 40});
  constexpr int64_t kOthers = 32;
  for (const BatchLimits limits : {BatchLimits{}, BatchLimits{.max_rows = 48},
                                   BatchLimits{.max_sequences = 12, .step_time_budget_ms = 15}}) {
    BatchEngine engine(*model_, limits);
    std::vector<Recorder> subjects(3);
    std::vector<Recorder> others(kOthers);
    std::vector<BatchEngine::RequestId> ids;
    for (int64_t i = 0; i < kOthers; ++i) {
      GenerationRequest other = Request(i % kRequests);
      other.prompt = Prompt(1 + 13 * (i % 11), 500 + static_cast<uint64_t>(i));
      other.priority = static_cast<int>(i % 3);
      ids.push_back(*engine.Submit(std::move(other), others[static_cast<size_t>(i)]));
      if (i % 11 != 10) continue;
      const int64_t subject = i / 11;
      ASSERT_TRUE(engine.Submit(Request(subject + 3), subjects[static_cast<size_t>(subject)]).ok());
    }
    ASSERT_TRUE(engine.Submit(Request(5), subjects[2]).ok());
    for (size_t step = 0; !engine.idle(); ++step) {
      ASSERT_TRUE(engine.Step().ok());
      if (step % 2 == 0 && step / 2 * 3 < ids.size()) engine.Cancel(ids[step / 2 * 3]);
    }
    for (size_t i = 0; i < subjects.size(); ++i) {
      ASSERT_TRUE(subjects[i].result.ok()) << subjects[i].result.status().message();
      EXPECT_TRUE(SameResult(*subjects[i].result, alone[i + 3]))
          << "subject " << i << ", rows " << limits.max_rows;
    }
    for (const Recorder& other : others) EXPECT_EQ(other.finishes, 1);
  }
}

TEST_F(BatchEngineTest, AHigherPriorityBeginsFirst) {
  BatchEngine engine(*model_, {.max_sequences = 1});
  std::vector<Recorder> recorders(3);
  std::vector<Recorder*> order;
  for (size_t i = 0; i < recorders.size(); ++i) {
    recorders[i].order = &order;
    GenerationRequest request{
        .prompt = Prompt(4, 1), .max_tokens = 2, .priority = static_cast<int>(i)};
    ASSERT_TRUE(engine.Submit(std::move(request), recorders[i]).ok());
  }
  RunToTheEnd(engine);
  EXPECT_EQ(order, (std::vector<Recorder*>{&recorders[2], &recorders[1], &recorders[0]}));
}

TEST_F(BatchEngineTest, AHigherPriorityTakesThePlaceOfALowerOneWhichLosesNothing) {
  const std::vector<GenerationResult> alone = Alone();
  BatchEngine engine(*model_, {.max_sequences = 1});
  Recorder low;
  Recorder high;
  std::vector<Recorder*> order;
  low.order = &order;
  high.order = &order;
  ASSERT_TRUE(engine.Submit(Request(6), low).ok());
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(engine.Step().ok());
  GenerationRequest urgent = Request(2);
  urgent.priority = 1;
  ASSERT_TRUE(engine.Submit(std::move(urgent), high).ok());
  RunToTheEnd(engine);
  EXPECT_EQ(order, (std::vector<Recorder*>{&high, &low}));
  EXPECT_TRUE(SameResult(*high.result, alone[2]));
  EXPECT_TRUE(SameResult(*low.result, alone[6]));
  EXPECT_EQ(low.result->num_preemptions, 1);
}

TEST_F(BatchEngineTest, ARequestThatWaitsPastItsDeadlineIsRefused) {
  BatchEngine engine(*model_, {.max_sequences = 1});
  Recorder first;
  Recorder second;
  ASSERT_TRUE(
      engine.Submit({.prompt = Prompt(4, 1), .max_tokens = 200, .ignore_eos = true}, first).ok());
  ASSERT_TRUE(engine.Step().ok());
  ASSERT_TRUE(engine.Submit({.prompt = Prompt(4, 2), .first_token_within_ms = 1}, second).ok());
  RunToTheEnd(engine);
  EXPECT_TRUE(first.result.ok());
  EXPECT_EQ(second.finishes, 1);
  EXPECT_EQ(second.result.status().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(second.result.status().message(),
            "request refused: waited past the time at which its first token was due");
}

TEST_F(BatchEngineTest, ATimeBudgetCutsPromptsOnceTheMachineIsKnown) {
  BatchEngine engine(*model_, {.max_sequences = 4, .step_time_budget_ms = 1});
  Recorder recorder;
  ASSERT_TRUE(engine.Submit({.prompt = Prompt(600, 1), .max_tokens = 1}, recorder).ok());
  RunToTheEnd(engine);
  ASSERT_TRUE(recorder.result.ok());
  // No machine computes 600 rows in a millisecond.
  EXPECT_GT(recorder.prefill.size(), 2U);
  EXPECT_LE(recorder.prefill.front(), 64);
}

TEST_F(BatchEngineTest, RequestsWaitUntilThereIsRoomAndNoneIsLost) {
  BatchEngine engine(*model_, {.max_sequences = 2});
  std::vector<Recorder> recorders(5);
  std::vector<Recorder*> order;
  for (Recorder& recorder : recorders) {
    recorder.order = &order;
    ASSERT_TRUE(engine.Submit({.prompt = Prompt(4, 1), .max_tokens = 3}, recorder).ok());
  }
  EXPECT_EQ(engine.num_waiting(), 5);
  ASSERT_TRUE(engine.Step().ok());
  EXPECT_EQ(engine.num_running(), 2);
  EXPECT_EQ(engine.num_waiting(), 3);
  RunToTheEnd(engine);
  ASSERT_EQ(order.size(), 5u);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], &recorders[i]);
}

TEST_F(BatchEngineTest, AnUnseededRequestReportsTheSeedThatRepeatsIt) {
  GenerationRequest request{.prompt = Prompt(5, 3), .max_tokens = 12, .ignore_eos = true};
  const Result<GenerationResult> drawn = Generate(*model_, std::move(request), {});
  ASSERT_TRUE(drawn.ok());
  GenerationRequest again{.prompt = Prompt(5, 3), .max_tokens = 12, .ignore_eos = true};
  again.sampling.seed = drawn->seed;
  const Result<GenerationResult> repeated = Generate(*model_, std::move(again), {});
  ASSERT_TRUE(repeated.ok());
  EXPECT_TRUE(SameResult(*drawn, *repeated));
}

TEST_F(BatchEngineTest, AStoppedStepChangesNothingAndIsRepeated) {
  const std::vector<GenerationResult> alone = Alone();
  BatchEngine engine(*model_);
  std::vector<Recorder> recorders(2);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(engine.Submit(Request(static_cast<int64_t>(i) + 2), recorders[i]).ok());
  }
  for (int step = 0; !engine.idle(); ++step) {
    if (step % 3 == 1) {
      model_->context().RequestStop();
      const Status stopped = engine.Step();
      ASSERT_FALSE(stopped.ok());
      EXPECT_EQ(stopped.code(), ErrorCode::kCancelled);
      model_->context().ClearStop();
    }
    ASSERT_TRUE(engine.Step().ok());
  }
  EXPECT_TRUE(SameResult(*recorders[0].result, alone[2]));
  EXPECT_TRUE(SameResult(*recorders[1].result, alone[3]));
}

TEST_F(BatchEngineTest, ACancelledRequestKeepsWhatItHasAndLeavesTheOthersAlone) {
  const std::vector<GenerationResult> alone = Alone();
  BatchEngine engine(*model_, {.max_sequences = 2});
  std::vector<Recorder> recorders(3);
  std::vector<BatchEngine::RequestId> ids;
  for (size_t i = 0; i < 3; ++i) {
    ids.push_back(*engine.Submit(Request(static_cast<int64_t>(i) + 2), recorders[i]));
  }
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(engine.Step().ok());
  engine.Cancel(ids[0]);
  engine.Cancel(ids[2]);  // still waits
  engine.Cancel(ids[0]);  // finished: nothing to do
  ASSERT_TRUE(recorders[0].result.ok());
  EXPECT_EQ(recorders[0].result->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(recorders[0].result->tokens.size(), 4u);
  EXPECT_EQ(recorders[0].finishes, 1);
  EXPECT_EQ(recorders[2].result->tokens.size(), 0u);
  RunToTheEnd(engine);
  EXPECT_TRUE(SameResult(*recorders[1].result, alone[3]));
}

TEST_F(BatchEngineTest, AReaderThatFailsEndsItsOwnRequestOnly) {
  const std::vector<GenerationResult> alone = Alone();
  BatchEngine engine(*model_);
  std::vector<Recorder> recorders(2);
  recorders[0].fail_at = 2;
  ASSERT_TRUE(engine.Submit(Request(2), recorders[0]).ok());
  ASSERT_TRUE(engine.Submit(Request(3), recorders[1]).ok());
  RunToTheEnd(engine);
  EXPECT_EQ(recorders[0].result.status().message(), "the reader is gone");
  EXPECT_TRUE(SameResult(*recorders[1].result, alone[3]));
}

TEST_F(BatchEngineTest, BadRequestsAreRefusedWithoutACall) {
  BatchEngine engine(*model_);
  Recorder recorder;
  const auto message = [&](GenerationRequest request) {
    return engine.Submit(std::move(request), recorder).status().message();
  };
  EXPECT_EQ(message({.prompt = {}}), "prompt: found no tokens, expected at least one");
  EXPECT_EQ(message({.prompt = TextRows({999999})}),
            "prompt: found token 999999 at position 0, expected 0 to 4095");
  EXPECT_EQ(message({.prompt = Prompt(16384, 1)}),
            "prompt: found 16384 tokens, expected fewer than the context of 16384");
  EXPECT_EQ(message({.prompt = Prompt(3, 1), .max_tokens = -1}),
            "max_tokens: found -1, expected 0 (as many as fit) or more");
  EXPECT_TRUE(engine.idle());
  EXPECT_EQ(recorder.finishes, 0);
}

TEST_F(BatchEngineTest, AStateThatIsReusedGivesTheBitsOfAColdStart) {
  for (const PrefillMode mode : {PrefillMode::kFull, PrefillMode::kExact, PrefillMode::kCompact}) {
    const PrefillOptions prefill{.mode = mode};
    const bool compact = mode == PrefillMode::kCompact;
    GenerationRequest first{.prompt = Prompt(compact ? 40 : 300, 5),
                            .max_tokens = 20,
                            .ignore_eos = true,
                            .prefill = prefill,
                            .keep_state = true};
    std::vector<BatchRow> rows = first.prompt;
    Result<GenerationResult> turn = Generate(*model_, std::move(first), {});
    ASSERT_TRUE(turn.ok() && turn->state);
    std::vector<int32_t> computed;
    for (const BatchRow& row : rows) computed.push_back(row.token);
    computed.insert(computed.end(), turn->tokens.begin(), turn->tokens.end() - 1);
    ASSERT_EQ(turn->state->len(), static_cast<int64_t>(computed.size()));

    // The next prompt leaves out five tokens of the answer and goes on differently.
    std::vector<int32_t> next(computed.begin(), computed.end() - 5);
    for (const int32_t token : RandomTokens(30, 2048, 9)) next.push_back(token);
    const int64_t reused = ReusableTokens(*turn->state, computed, next, prefill);
    EXPECT_EQ(reused, static_cast<int64_t>(computed.size()) - 5) << PrefillModeName(mode);
    turn->state->Rollback(turn->state->len() - reused);
    GenerationRequest warm{
        .prompt = TextRows(next), .max_tokens = 8, .prefill = prefill, .keep_state = true};
    warm.sampling = {.seed = 4, .num_logprobs = 3};
    GenerationRequest cold{
        .prompt = TextRows(next), .max_tokens = 8, .prefill = prefill, .keep_state = true};
    cold.sampling = warm.sampling;
    warm.state = std::move(turn->state);
    const Result<GenerationResult> a = Generate(*model_, std::move(warm), {});
    const Result<GenerationResult> b = Generate(*model_, std::move(cold), {});
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->reused_len, reused);
    EXPECT_EQ(b->reused_len, 0);
    EXPECT_TRUE(SameResult(*a, *b)) << PrefillModeName(mode);
    EXPECT_TRUE(a->state->Serialize(model_->identity()) == b->state->Serialize(model_->identity()))
        << PrefillModeName(mode);
  }
}

TEST_F(BatchEngineTest, AStateIsNotReusedWhereAColdStartWouldDiffer) {
  const std::vector<int32_t> computed = RandomTokens(200, 2048, 5);
  GenerationRequest first{
      .prompt = TextRows(computed), .max_tokens = 1, .ignore_eos = true, .keep_state = true};
  first.prefill = {.mode = PrefillMode::kCompact};
  const Result<GenerationResult> turn = Generate(*model_, std::move(first), {});
  ASSERT_TRUE(turn.ok() && turn->state);
  std::vector<int32_t> longer = computed;
  longer.push_back(7);
  // The decoder half of the first 60 tokens was left out.
  EXPECT_EQ(ReusableTokens(*turn->state, computed, longer, {.mode = PrefillMode::kCompact}), 0);
  EXPECT_EQ(ReusableTokens(*turn->state, computed, longer, PrefillOptions::Full()), 0);

  SequenceState full = model_->NewSequence();
  EXPECT_EQ(ReusableTokens(full, {}, longer, PrefillOptions::Full()), 0);
}

}  // namespace
}  // namespace deepinfer
