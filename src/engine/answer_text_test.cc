#include "engine/answer_text.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

class AnswerTextTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Tokenizer> tokenizer =
        Tokenizer::Load(Path(DEEPINFER_SOURCE_DIR) / "models/nano/tokenizer.json");
    ASSERT_TRUE(tokenizer.ok());
    tokenizer_.emplace(*std::move(tokenizer));
  }

  // Adds the tokens of a text until the answer ends; returns how many were taken.
  int64_t Add(AnswerText& answer, std::string_view text) {
    const std::vector<int32_t> tokens = *tokenizer_->Encode(text);
    int64_t taken = 0;
    for (const int32_t token : tokens) {
      if (answer.finished()) break;
      shown_ += answer.Add(token);
      ++taken;
    }
    return taken;
  }

  std::optional<Tokenizer> tokenizer_;
  std::string shown_;
};

TEST_F(AnswerTextTest, TheEndTokenEndsTheAnswerAndIsNotShown) {
  const int32_t eos = tokenizer_->special().eos;
  AnswerText answer(*tokenizer_, {.end_token = eos, .max_tokens = 100});
  Add(answer, "Good day");
  EXPECT_FALSE(answer.finished());
  shown_ += answer.Add(eos);
  ASSERT_TRUE(answer.finished());
  EXPECT_EQ(answer.finish_reason(), FinishReason::kStop);
  EXPECT_EQ(answer.text(), "Good day");
  EXPECT_EQ(shown_, "Good day");
}

TEST_F(AnswerTextTest, TheLastAllowedTokenEndsTheAnswerByLength) {
  AnswerText answer(*tokenizer_, {.max_tokens = 2});
  EXPECT_EQ(Add(answer, "one two three four"), 2);
  EXPECT_EQ(answer.finish_reason(), FinishReason::kLength);
  EXPECT_EQ(shown_, answer.text());
}

TEST_F(AnswerTextTest, AStopStringEndsTheAnswerBeforeIt) {
  AnswerText answer(*tokenizer_, {.stop = {"wo t"}, .max_tokens = 100});
  Add(answer, "one two three");
  ASSERT_TRUE(answer.finished());
  EXPECT_EQ(answer.finish_reason(), FinishReason::kStop);
  EXPECT_EQ(answer.stop_string(), "wo t");
  EXPECT_EQ(shown_, "one t");
}

TEST_F(AnswerTextTest, AnEndFromOutsideShowsWhatWasHeldBack) {
  AnswerText answer(*tokenizer_, {.stop = {"day!"}, .max_tokens = 100});
  Add(answer, "Good day");
  EXPECT_EQ(shown_, "Good ");
  shown_ += answer.End(FinishReason::kCancelled);
  EXPECT_EQ(shown_, "Good day");
  EXPECT_EQ(answer.finish_reason(), FinishReason::kCancelled);
}

}  // namespace
}  // namespace deepinfer
