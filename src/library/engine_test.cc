#include "deepinfer/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace deepinfer {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const std::string kNano = std::string(DEEPINFER_SOURCE_DIR) + "/models/nano";

class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Engine> engine = Engine::Open({.model_dir = kNano, .threads = 2, .max_sequences = 4});
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_.emplace(*std::move(engine));
  }

  Request Hello(int64_t max_tokens = 0) {
    Request request{.sampling = {.temperature = 0}, .max_tokens = max_tokens};
    Result<std::vector<int32_t>> prompt = engine_->EncodeChat({.messages = {{"user", "Hello!"}}});
    EXPECT_TRUE(prompt.ok());
    request.prompt = *std::move(prompt);
    return request;
  }

  std::optional<Engine> engine_;
};

TEST_F(EngineTest, AnAnswerStreamsAndIsWholeAtTheEnd) {
  Result<AnswerStream> stream = engine_->Submit(Hello());
  ASSERT_TRUE(stream.ok());
  std::string text;
  std::vector<int32_t> tokens;
  int64_t prompt_done = 0;
  while (const std::optional<AnswerPiece> piece = stream->Next()) {
    text += piece->text;
    tokens.insert(tokens.end(), piece->tokens.begin(), piece->tokens.end());
    prompt_done = piece->prompt_done;
  }
  EXPECT_TRUE(stream->ended());
  const Result<Answer> answer = stream->Wait();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(text, "Hello! How can I help you today?");
  EXPECT_EQ(answer->text, text);
  EXPECT_EQ(answer->tokens, tokens);
  EXPECT_EQ(answer->prompt_len, prompt_done);
  EXPECT_EQ(answer->finish_reason, FinishReason::kStop);
}

TEST_F(EngineTest, TheSeedOfAnUnseededAnswerRepeatsIt) {
  Request request = Hello(20);
  request.sampling = {.temperature = 1.5};
  request.ignore_eos = true;
  const Result<Answer> drawn = engine_->Submit(request)->Wait();
  ASSERT_TRUE(drawn.ok());
  request.sampling.seed = drawn->seed;
  EXPECT_EQ(engine_->Submit(request)->Wait()->tokens, drawn->tokens);
}

TEST_F(EngineTest, NextWithinGivesUpInTime) {
  Request request = Hello(4000);
  request.ignore_eos = true;
  Result<AnswerStream> stream = engine_->Submit(request);
  ASSERT_TRUE(stream.ok());
  stream->Cancel();
  while (stream->NextWithin(milliseconds(1))) {
  }
  EXPECT_TRUE(stream->ended());
  EXPECT_EQ(stream->Wait()->finish_reason, FinishReason::kCancelled);
}

TEST_F(EngineTest, LettingGoOfAStreamCancelsItsRequest) {
  Request request = Hello(4000);
  request.ignore_eos = true;
  { const Result<AnswerStream> stream = engine_->Submit(request); }
  EXPECT_TRUE(engine_->WaitIdle(milliseconds(5000)));
  EXPECT_EQ(engine_->Statistics().num_finished, 1);
}

TEST_F(EngineTest, AStreamOutlivesItsEngine) {
  Request request = Hello(4000);
  request.ignore_eos = true;
  Result<AnswerStream> stream = engine_->Submit(request);
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE(stream->Next().has_value());
  engine_.reset();
  EXPECT_TRUE(stream->ended());
  std::string text;
  while (const std::optional<AnswerPiece> piece = stream->Next()) text += piece->text;
  const Result<Answer> answer = stream->Wait();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(answer->text.ends_with(text));
}

TEST_F(EngineTest, CallbacksMaySubmitAndCancel) {
  std::atomic<int> ends{0};
  std::atomic<int> submitted{0};
  Request request = Hello(3);
  std::function<void(Result<Answer>)> on_end = [&](const Result<Answer>& answer) {
    EXPECT_TRUE(answer.ok());
    ++ends;
    if (submitted.fetch_add(1) >= 5) return;
    const Result<Engine::RequestId> id = engine_->Submit(request, {.on_end = on_end});
    EXPECT_TRUE(id.ok());
    if (submitted.load() % 2 == 0) engine_->Cancel(*id);
  };
  ASSERT_TRUE(engine_->Submit(request, {.on_end = on_end}).ok());
  while (ends.load() < 6) std::this_thread::yield();
  engine_->Close();
  EXPECT_EQ(ends.load(), 6);
}

TEST_F(EngineTest, ACloseEndsEverythingWithinAMoment) {
  std::vector<AnswerStream> streams;
  Request request = Hello(4000);
  request.ignore_eos = true;
  for (int i = 0; i < 12; ++i) streams.push_back(*engine_->Submit(request));
  ASSERT_TRUE(streams[0].Next().has_value());
  EXPECT_EQ(engine_->Close(milliseconds(1)), 12);
  EXPECT_EQ(engine_->Submit(request).status().code(), ErrorCode::kCancelled);
  for (AnswerStream& stream : streams) {
    EXPECT_EQ(stream.Wait()->finish_reason, FinishReason::kCancelled);
  }
}

TEST_F(EngineTest, BadInputIsRefusedWithASentence) {
  EXPECT_EQ(engine_->Submit(Request{}).status().message(),
            "prompt: found no tokens, expected at least one");
  Request hot = Hello();
  hot.sampling.temperature = -1;
  EXPECT_THAT(engine_->Submit(hot).status().message(), HasSubstr("temperature"));
  EXPECT_THAT(engine_->EncodeChat({.messages = {{"nobody", "x"}}}).status().message(),
              HasSubstr("messages[0]: found role 'nobody'"));
  EXPECT_THAT(engine_->EncodeChat({.messages_json = "["}).status().message(), HasSubstr("found"));
  EXPECT_THAT(
      engine_->EncodeChat({.messages = {{"user", "x"}}, .effort = "high"}).status().message(),
      HasSubstr("without thinking"));
}

TEST_F(EngineTest, TextGoesToTokensAndBack) {
  const Result<std::vector<int32_t>> tokens = engine_->Encode("a river");
  ASSERT_TRUE(tokens.ok());
  EXPECT_TRUE(engine_->Decode(*tokens).ends_with("a river"));
  // A text that spells the first token itself does not get it twice.
  EXPECT_EQ(*engine_->Encode(engine_->Decode(*tokens)), *tokens);
  EXPECT_GT(engine_->vocab_size(), 0);
  EXPECT_GT(engine_->max_model_len(), 0);
  EXPECT_FALSE(engine_->MemoryPlan().empty());
  EXPECT_TRUE(engine_->all_weights_resident());
  EXPECT_THAT(engine_->fingerprint(), HasSubstr("-v41-release-1"));
}

TEST(EngineOptionsTest, BadOptionsAreRefusedByName) {
  EXPECT_THAT(Engine::Open({}).status().message(), HasSubstr("model_dir"));
  EXPECT_EQ(Engine::Open({.model_dir = kNano, .max_sequences = 0}).status().message(),
            "max_sequences: found 0, expected 1 or more");
  EXPECT_EQ(Engine::Open({.model_dir = "/no/such/model"}).status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace deepinfer
