#include "engine/engine_loop.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "engine/generator.h"
#include "engine/same_bits.h"

namespace deepinfer {
namespace {

using std::chrono::milliseconds;

bool SameAnswer(const Answer& a, const GenerationResult& b) {
  bool same = a.tokens == b.tokens && a.text == b.text && a.finish_reason == b.finish_reason &&
              a.stop_string == b.stop_string && a.seed == b.seed &&
              a.logprobs.size() == b.logprobs.size() && a.alternatives.size() == b.top.size();
  for (size_t i = 0; same && i < a.logprobs.size(); ++i) {
    same = std::memcmp(&a.logprobs[i], &b.logprobs[i], sizeof(float)) == 0;
  }
  for (size_t i = 0; same && i < a.alternatives.size(); ++i) {
    same = a.alternatives[i].token == b.top[i].token &&
           std::memcmp(&a.alternatives[i].logprob, &b.top[i].logprob, sizeof(float)) == 0;
  }
  return same;
}

class EngineLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = LoadOrDie(
        {.dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano", .threads = 2, .max_sequences = 8});
    ASSERT_NE(model_, nullptr);
  }

  // Requests of every kind: greedy and sampled, short and long, penalised, with stop strings and
  // logprobs, in all prefill modes.
  GenerationRequest Request(int64_t i) {
    const auto seed = static_cast<uint64_t>(i);
    GenerationRequest request{
        .prompt = TextRows(RandomTokens(3 + 17 * (i % 9), model_->config().vocab_size, 100 + seed)),
        .max_tokens = 4 + 3 * (i % 7),
        .ignore_eos = i % 2 == 0};
    request.sampling.temperature = i % 2 == 0 ? 0 : 0.9;
    request.sampling.seed = 1000 + seed;
    request.sampling.num_logprobs = i % 5 == 0 ? 2 : -1;
    if (i % 3 == 1) request.sampling.repetition_penalty = 1.3;
    if (i % 4 == 1) request.stop = {"e", "the"};
    request.prefill.mode = static_cast<PrefillMode>(i % 4);
    return request;
  }
  GenerationRequest Endless(uint64_t seed, int64_t max_tokens = 4000) {
    GenerationRequest request{
        .prompt = TextRows(RandomTokens(4, model_->config().vocab_size, seed)),
        .max_tokens = max_tokens,
        .ignore_eos = true};
    request.sampling.temperature = 0;
    return request;
  }

  std::shared_ptr<AnswerChannel> SubmitOrDie(EngineLoop& loop, GenerationRequest request) {
    Result<std::shared_ptr<AnswerChannel>> channel = loop.Submit(std::move(request));
    EXPECT_TRUE(channel.ok()) << channel.status().message();
    return *channel;
  }

  std::unique_ptr<ModelInstance> model_;
};

struct ReadAnswer {
  std::string text;
  std::vector<int32_t> tokens;
  int64_t pieces = 0;
};

ReadAnswer ReadAll(AnswerChannel& channel) {
  ReadAnswer read;
  while (const std::optional<AnswerPiece> piece = channel.Next({})) {
    read.text += piece->text;
    read.tokens.insert(read.tokens.end(), piece->tokens.begin(), piece->tokens.end());
    ++read.pieces;
  }
  return read;
}

TEST_F(EngineLoopTest, RequestsOfFourThreadsGiveTheBitsOfGenerateAlone) {
  constexpr int64_t kThreads = 4;
  constexpr int64_t kEach = 8;
  std::vector<GenerationResult> alone;
  for (int64_t i = 0; i < kThreads * kEach; ++i) {
    Result<GenerationResult> result = Generate(*model_, Request(i), {});
    ASSERT_TRUE(result.ok()) << result.status().message();
    alone.push_back(*std::move(result));
  }
  std::vector<Result<Answer>> answers(kThreads * kEach, Internal("none"));
  std::vector<ReadAnswer> read(kThreads * kEach);
  std::atomic<int64_t> cancelled{0};
  EngineLoop loop(*model_, {.max_unread_tokens = 3});
  const auto submit_and_read = [&](int64_t first) {
    std::vector<std::shared_ptr<AnswerChannel>> channels;
    for (int64_t i = first; i < first + kEach; ++i) channels.push_back(*loop.Submit(Request(i)));
    for (size_t i = 0; i < channels.size(); ++i) {
      const size_t at = static_cast<size_t>(first) + i;
      if (i % 4 == 3 && channels[i]->Cancel()) cancelled.fetch_add(1);
      read[at] = ReadAll(*channels[i]);
      answers[at] = channels[i]->Wait();
      EXPECT_FALSE(channels[i]->Cancel());  // it has ended, once
    }
  };
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back(submit_and_read, thread * kEach);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(loop.AwaitIdle(EngineLoop::Clock::now() + milliseconds(10'000)));
  EXPECT_EQ(loop.Statistics().num_finished, kThreads * kEach);
  loop.Close(milliseconds(0));
  int64_t found_cancelled = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i].ok()) << answers[i].status().message();
    EXPECT_EQ(read[i].text, answers[i]->text) << i;
    EXPECT_EQ(read[i].tokens, answers[i]->tokens) << i;
    if (answers[i]->finish_reason == FinishReason::kCancelled) {
      ++found_cancelled;
      EXPECT_TRUE(std::equal(answers[i]->tokens.begin(), answers[i]->tokens.end(),
                             alone[i].tokens.begin()));
    } else {
      EXPECT_TRUE(SameAnswer(*answers[i], alone[i])) << "request " << i;
    }
  }
  EXPECT_EQ(found_cancelled, cancelled.load());
}

TEST_F(EngineLoopTest, AReaderThatNeverReadsPausesItsOwnRequestOnly) {
  EngineLoop loop(*model_, {.max_unread_tokens = 5});
  const auto stuck = SubmitOrDie(loop, Endless(1));
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(SubmitOrDie(loop, Endless(10 + i, 30))->Wait()->tokens.size(), 30U);
  }
  EXPECT_FALSE(stuck->ended());
  EXPECT_FALSE(loop.AwaitIdle(EngineLoop::Clock::now() + milliseconds(50)));
  // Nothing runs while the only request is paused.
  const int64_t steps = loop.Statistics().num_steps;
  EXPECT_FALSE(loop.AwaitIdle(EngineLoop::Clock::now() + milliseconds(50)));
  EXPECT_EQ(loop.Statistics().num_steps, steps);
  const std::optional<AnswerPiece> piece = stuck->Next({});
  ASSERT_TRUE(piece.has_value());
  EXPECT_LE(piece->tokens.size(), 5U);
  EXPECT_TRUE(stuck->Cancel());
  EXPECT_TRUE(loop.AwaitIdle(EngineLoop::Clock::now() + milliseconds(1000)));
}

TEST_F(EngineLoopTest, APausedAnswerGoesOnWhenItIsReadAndStaysTheSame) {
  GenerationRequest request = Endless(3, 200);
  const Result<GenerationResult> alone = Generate(*model_, Endless(3, 200), {});
  EngineLoop loop(*model_, {.max_unread_tokens = 1});
  const auto channel = SubmitOrDie(loop, std::move(request));
  const ReadAnswer read = ReadAll(*channel);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(read.tokens, alone->tokens);
  EXPECT_EQ(read.text, alone->text);
  EXPECT_GE(read.pieces, 200);
}

TEST_F(EngineLoopTest, CloseLetsRequestsEndWithinTheGraceAndCutsTheOthersShort) {
  EngineLoop loop(*model_, {});
  const auto brief = SubmitOrDie(loop, Endless(1, 5));
  const auto endless = SubmitOrDie(loop, Endless(2));
  std::vector<std::shared_ptr<AnswerChannel>> waiting;
  for (uint64_t i = 0; i < 20; ++i) waiting.push_back(SubmitOrDie(loop, Endless(3 + i)));
  EXPECT_FALSE(brief->Wait()->tokens.empty());
  EXPECT_EQ(loop.Close(milliseconds(10)), 21);
  EXPECT_EQ(loop.Submit(Endless(9)).status().code(), ErrorCode::kCancelled);
  EXPECT_EQ(brief->ended(), true);
  EXPECT_EQ(endless->Wait()->finish_reason, FinishReason::kCancelled);
  for (const auto& channel : waiting) {
    EXPECT_EQ(channel->Wait()->finish_reason, FinishReason::kCancelled);
  }
}

TEST_F(EngineLoopTest, CallbacksThatBlockHoldUpNeitherStepsNorStreams) {
  std::atomic<bool> release{false};
  std::atomic<int> ends{0};
  std::string text;
  Result<Answer> answer = Internal("none");
  {
    EngineLoop loop(*model_, {.max_unread_tokens = 4});
    RequestCallbacks callbacks{.on_piece =
                                   [&](const AnswerPiece& piece) {
                                     release.wait(false);
                                     text += piece.text;
                                   },
                               .on_end =
                                   [&](Result<Answer> whole) {
                                     answer = std::move(whole);
                                     ++ends;
                                   }};
    ASSERT_TRUE(loop.Submit(Endless(1, 40), callbacks).ok());
    EXPECT_EQ(SubmitOrDie(loop, Endless(2, 40))->Wait()->tokens.size(), 40U);
    EXPECT_EQ(ends.load(), 0);
    release = true;
    release.notify_all();
    EXPECT_TRUE(loop.AwaitIdle(EngineLoop::Clock::now() + std::chrono::minutes(1)));
  }
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(ends.load(), 1);
  EXPECT_EQ(answer->text, text);
  EXPECT_EQ(answer->tokens.size(), 40U);
}

TEST_F(EngineLoopTest, CancellingTheOnlyRequestAbandonsItsStep) {
  EngineLoop loop(*model_, {});
  // One step of thousands of rows: far longer than a cancel may take.
  GenerationRequest request = Endless(1);
  request.prompt = TextRows(RandomTokens(12000, model_->config().vocab_size, 1));
  request.prefill = PrefillOptions::Full();
  const auto channel = SubmitOrDie(loop, std::move(request));
  while (loop.Statistics().num_running == 0) std::this_thread::yield();
  EXPECT_TRUE(channel->Cancel());
  EXPECT_EQ(channel->Wait()->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(SubmitOrDie(loop, Endless(2, 1))->Wait()->tokens.size(), 1U);
  loop.Close(milliseconds(0));
  const EngineStatistics figures = loop.Statistics();
  EXPECT_LE(figures.num_stopped_steps, 1);
  // An abandoned step counts nothing.  On a busy machine the cancel may come after the whole
  // prompt.
  const int64_t counted = figures.prompt_tokens - 4;
  EXPECT_TRUE(counted % kMaxBatchRows == 0 || counted == 12000) << counted;
}

TEST_F(EngineLoopTest, ABadRequestIsRefusedAndOpensNothing) {
  EngineLoop loop(*model_, {});
  EXPECT_EQ(loop.Submit({.prompt = {}}).status().message(),
            "prompt: found no tokens, expected at least one");
  EXPECT_EQ(loop.Statistics().num_accepted, 0);
}

TEST_F(EngineLoopTest, FiguresAddUp) {
  EngineLoop loop(*model_, {});
  const auto a = SubmitOrDie(loop, Endless(1, 10));
  const auto b = SubmitOrDie(loop, Endless(2, 20));
  EXPECT_TRUE(a->Wait().ok() && b->Wait().ok());
  loop.Close(milliseconds(0));
  const EngineStatistics figures = loop.Statistics();
  EXPECT_EQ(figures.num_accepted, 2);
  EXPECT_EQ(figures.num_finished, 2);
  EXPECT_EQ(figures.prompt_tokens, 8);
  EXPECT_EQ(figures.output_tokens, 30);
  EXPECT_GE(figures.num_steps, 20);
  EXPECT_GT(figures.step_seconds, 0);
  int64_t steps = 0;
  int64_t tokens = 0;
  for (const StepsOfSize& alike : figures.steps_by_size) {
    steps += alike.num_steps;
    tokens += alike.tokens;
  }
  EXPECT_EQ(steps, figures.num_steps);
  EXPECT_EQ(tokens, 8 + 30 - 2);  // the first token of an answer comes out of its prompt
  EXPECT_GE(figures.idle_share(), 0);
  EXPECT_LT(figures.idle_share(), 1);
  EXPECT_EQ(figures.kv_bytes, 0);
  EXPECT_GT(figures.kv_bytes_max, 0);
}

}  // namespace
}  // namespace deepinfer
