#include "apps/chat/chat_session.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

class ChatSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<ModelInstance>> model =
        ModelInstance::Load({.dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano",
                             .max_model_len = 512,
                             .max_sequences = 2});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
  }

  ChatSession Session(PrefillMode mode = PrefillMode::kCompact) {
    return ChatSession(*model_, {.temperature = 0.8, .seed = 3, .max_tokens = 40},
                       {.prefill = {.mode = mode}});
  }

  static std::string Contents(const ChatSession& session) {
    std::string text;
    for (const Message& message : session.messages()) {
      text +=
          std::string(RoleName(message.role)).substr(0, 1) + ":" + message.content[0].text + "|";
    }
    return text;
  }

  std::unique_ptr<ModelInstance> model_;
};

TEST_F(ChatSessionTest, EveryAnswerIsThatOfAColdStartThoughTheStateIsKept) {
  for (const PrefillMode mode : {PrefillMode::kFull, PrefillMode::kExact, PrefillMode::kCompact}) {
    ChatSession warm = Session(mode);
    int64_t reused = 0;
    for (const char* question : {"Hello!", "Who are you?", "Tell me a story.", "And then?"}) {
      ChatSession cold = Session(mode);
      cold.SetMessages(warm.messages());
      const Result<GenerationResult> expected = cold.Ask(question, {});
      const Result<GenerationResult> found = warm.Ask(question, {});
      ASSERT_TRUE(expected.ok() && found.ok());
      EXPECT_EQ(expected->reused_len, 0);
      EXPECT_EQ(found->tokens, expected->tokens) << question;
      reused += found->reused_len;
    }
    EXPECT_GT(reused, 0) << PrefillModeName(mode);
    EXPECT_EQ(warm.messages().size(), 8u);
    EXPECT_EQ(warm.totals().reused_tokens, reused);
  }
}

TEST_F(ChatSessionTest, RetryAnswersTheSameMessageWithOtherLuck) {
  ChatSession session = Session();
  EXPECT_FALSE(session.Retry({}).ok());
  const Result<GenerationResult> first = session.Ask("Tell me a story.", {});
  const Result<GenerationResult> second = session.Retry({});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->seed, 3u);
  EXPECT_EQ(second->seed, 4u);
  ASSERT_EQ(session.messages().size(), 2u);
  EXPECT_EQ(session.messages()[1].content[0].text, second->text);
}

TEST_F(ChatSessionTest, EditForgetsWhatCameAfterTheMessage) {
  ChatSession session = Session();
  session.SetSystem("Be brief.");
  ASSERT_TRUE(session.Ask("Hello!", {}).ok());
  ASSERT_TRUE(session.Ask("Who are you?", {}).ok());
  EXPECT_EQ(*session.UserText(2), "Who are you?");
  ASSERT_TRUE(session.Edit(1, "Good morning!", {}).ok());
  ASSERT_EQ(session.messages().size(), 3u);
  EXPECT_EQ(*session.UserText(1), "Good morning!");
  EXPECT_EQ(session.Edit(2, "x", {}).status().message(), "message: found 2, expected 1 to 1");
}

TEST_F(ChatSessionTest, AnErrorLeavesTheConversationAsItWas) {
  ChatSession session = Session();
  ASSERT_TRUE(session.Ask("Hello!", {}).ok());
  const std::string before = Contents(session);
  std::string text;
  for (int i = 0; i < 600; ++i) text += "word ";
  EXPECT_FALSE(session.Ask(text, {}).ok());
  EXPECT_EQ(Contents(session), before);
  EXPECT_TRUE(session.Ask("Who are you?", {}).ok());
}

TEST_F(ChatSessionTest, AStoppedAnswerStaysAsFarAsItCame) {
  ChatSession session = Session();
  const AnswerCallbacks stop = {.on_text =
                                    [&](std::string_view) {
                                      model_->context().RequestStop();
                                      return Status::Ok();
                                    },
                                .on_prefill = {}};
  const Result<GenerationResult> stopped = session.Ask("Who are you?", stop);
  model_->context().ClearStop();
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(stopped->tokens.size(), 1u);
  ASSERT_EQ(session.messages().size(), 2u);
  EXPECT_EQ(session.messages()[1].content[0].text, stopped->text);
  EXPECT_TRUE(session.Ask("Go on.", {}).ok());
  EXPECT_EQ(session.messages().size(), 4u);
}

TEST_F(ChatSessionTest, SystemTextAndEffortAreSetAndTakenAway) {
  ChatSession session = Session();
  session.SetSystem("One.");
  session.SetSystem("Two.");
  EXPECT_EQ(Contents(session), "s:Two.|");
  session.SetSystem("");
  EXPECT_EQ(Contents(session), "");
  EXPECT_TRUE(session.SetEffort("high").ok());
  EXPECT_TRUE(session.thinking());
  EXPECT_FALSE(session.SetEffort("enormous").ok());
  EXPECT_TRUE(session.thinking());
  EXPECT_TRUE(session.SetEffort("off").ok());
  EXPECT_FALSE(session.thinking());
}

TEST_F(ChatSessionTest, ReasoningAndTextAreTakenApart) {
  const Tokenizer& tokenizer = *model_->tokenizer();
  const int32_t eos = tokenizer.special().eos;
  const auto message = [&](std::string text, bool ended, ThinkingMode mode) {
    GenerationResult result;
    result.text = std::move(text);
    result.tokens = {ended ? eos : eos + 1};
    return AnswerMessage(result, mode, tokenizer);
  };
  const Message whole = message("hm</think>Yes.", true, ThinkingMode::kThinking);
  EXPECT_EQ(whole.reasoning_content, "hm");
  EXPECT_EQ(whole.content[0].text, "Yes.");
  const Message cut = message("hm", false, ThinkingMode::kThinking);
  EXPECT_EQ(cut.reasoning_content, "hm");
  EXPECT_EQ(cut.content[0].text, "");
  const Message plain = message("a</think>b", false, ThinkingMode::kChat);
  EXPECT_EQ(plain.content[0].text, "a</think>b");
}

}  // namespace
}  // namespace deepinfer
