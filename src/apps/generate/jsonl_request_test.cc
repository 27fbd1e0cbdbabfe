#include "apps/generate/jsonl_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Message(std::string_view line) {
  JsonlRequest request;
  const Status status = ParseJsonlRequest(line, request);
  return status.ok() ? "ok" : status.message();
}

TEST(JsonlRequestTest, EveryFieldIsRead) {
  JsonlRequest request;
  const Status status = ParseJsonlRequest(
      R"({"id":"a\"b","prompt":"Hi\n","system":"S","raw":false,"thinking":true,"effort":"high",)"
      R"("max_tokens":5,"temperature":0.5,"top_p":1,"top_k":3,"min_p":0.1,)"
      R"("repetition_penalty":1.5,"presence_penalty":-1,"frequency_penalty":2,)"
      R"("logit_bias":{"7":-100,"9":1.5},"seed":18446744073709551615,"stop":["x","y"],)"
      R"("logprobs":2})",
      request);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(request.id, R"("a\"b")");
  EXPECT_EQ(request.source.text, "Hi\n");
  EXPECT_FALSE(request.source.messages.has_value());
  const RequestOptions& options = request.options;
  EXPECT_EQ(options.system, "S");
  EXPECT_EQ(options.raw, false);
  EXPECT_EQ(options.thinking, true);
  EXPECT_EQ(options.effort, "high");
  EXPECT_EQ(options.max_tokens, 5);
  EXPECT_EQ(options.temperature, 0.5);
  EXPECT_EQ(options.top_p, 1.0);
  EXPECT_EQ(options.top_k, 3);
  EXPECT_EQ(options.min_p, 0.1);
  EXPECT_EQ(options.repetition_penalty, 1.5);
  EXPECT_EQ(options.presence_penalty, -1.0);
  EXPECT_EQ(options.frequency_penalty, 2.0);
  EXPECT_EQ(options.logit_bias, (std::vector<std::pair<int32_t, float>>{{7, -100.0f}, {9, 1.5f}}));
  EXPECT_EQ(options.seed, 18446744073709551615u);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(options.logprobs, 2);
}

TEST(JsonlRequestTest, MessagesAndOtherSpellingsAreRead) {
  JsonlRequest request;
  ASSERT_TRUE(ParseJsonlRequest(R"({"messages":[{"role":"user","content":"Hi"}],"stop":".",)"
                                R"("effort":40,"id":-3,"seed":null})",
                                request)
                  .ok());
  ASSERT_TRUE(request.source.messages.has_value());
  EXPECT_EQ(*request.source.messages, R"([{"role":"user","content":"Hi"}])");
  EXPECT_EQ(request.options.stop, std::vector<std::string>{"."});
  EXPECT_EQ(request.options.effort, "40");
  EXPECT_EQ(request.id, "-3");
  EXPECT_FALSE(request.options.seed.has_value());
}

TEST(JsonlRequestTest, ErrorsNameTheFieldWhatWasFoundAndWhatWasExpected) {
  EXPECT_EQ(Message(R"({"prompt":5})"), "prompt: found 5, expected a string");
  EXPECT_EQ(Message(R"({"prompt":"x","top_k":1.5})"), "top_k: found 1.5, expected an integer");
  EXPECT_EQ(Message(R"({"prompt":"x","top_k":4294967296})"),
            "top_k: found 4294967296, expected an integer");
  EXPECT_EQ(Message(R"({"prompt":"x","temperature":"hot"})"),
            "temperature: found \"hot\", expected a number");
  EXPECT_EQ(Message(R"({"prompt":"x","seed":-1})"),
            "seed: found -1, expected an integer from 0 to 18446744073709551615");
  EXPECT_EQ(Message(R"({"prompt":"x","raw":1})"), "raw: found 1, expected true or false");
  EXPECT_EQ(Message(R"({"prompt":"x","stop":[1]})"),
            "stop: found 1, expected a list of strings only");
  EXPECT_EQ(Message(R"({"prompt":"x","logit_bias":{"a":1}})"),
            "logit_bias: found key 'a', expected a token id");
  EXPECT_EQ(Message(R"({"prompt":"x","id":[]})"),
            "id: found a list, expected a string or an integer");
  EXPECT_EQ(Message(R"({"prompt":"x","prompt":"y"})"), "prompt: found it twice, expected it once");
  EXPECT_THAT(Message(R"({"prompt":"x","max_token":3})"),
              StartsWith("found unknown field 'max_token', expected one of id, prompt, messages"));
  EXPECT_THAT(Message(R"({"messages":[{"role":"nobody"}]})"), HasSubstr("messages[0].role"));
  EXPECT_EQ(Message(R"({})"), "found neither prompt nor messages, expected one of them");
  EXPECT_EQ(Message(R"({"prompt":"x","messages":[]})"),
            "found prompt and messages, expected one of them");
}

TEST(JsonlRequestTest, WhatIsNoObjectIsRefused) {
  for (const char* line :
       {"", "{", "[1]", "\"x\"", "null", R"({"prompt":"x"} {})", R"({"prompt":"x",})",
        R"({"prompt":"\ud800"})", "{\"prompt\":\"\xff\"}", R"({"prompt":nul})"}) {
    EXPECT_THAT(Message(line), HasSubstr("expected an object")) << line;
  }
  EXPECT_THAT(Message(std::string(100000, '[')), HasSubstr("malformed JSON"));
}

TEST(JsonlRequestTest, TheIdIsKnownEvenWhenTheRestIsBad) {
  JsonlRequest request;
  EXPECT_FALSE(ParseJsonlRequest(R"({"nope":1,"id":"k"})", request).ok());
  EXPECT_EQ(request.id, "\"k\"");
  JsonlRequest nameless;
  EXPECT_FALSE(ParseJsonlRequest(R"({"prompt":1})", nameless).ok());
  EXPECT_EQ(nameless.id, "null");
}

}  // namespace
}  // namespace deepinfer
