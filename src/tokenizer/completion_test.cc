#include "tokenizer/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kSource = DEEPINFER_SOURCE_DIR;
const std::string kEos = "<｜end▁of▁sentence｜>";

json ReadJson(const std::string& name) { return json::parse(std::ifstream(kSource + name)); }

void ExpectParsed(const std::string& text, const std::string& mode, const json& expected) {
  const Result<Completion> parsed =
      ParseCompletion(text, mode == "thinking" ? ThinkingMode::kThinking : ThinkingMode::kChat);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message() << "\n" << text;
  EXPECT_EQ(parsed->content, expected["content"].get<std::string>());
  EXPECT_EQ(parsed->reasoning_content, expected["reasoning_content"].get<std::string>());
  ASSERT_EQ(parsed->tool_calls.size(), expected["tool_calls"].size());
  for (size_t i = 0; i < parsed->tool_calls.size(); ++i) {
    const json& function = expected["tool_calls"][i]["function"];
    EXPECT_EQ(parsed->tool_calls[i].name, function["name"].get<std::string>());
    EXPECT_EQ(parsed->tool_calls[i].arguments, function["arguments"].get<std::string>());
  }
}

TEST(CompletionTest, ParsesGoldenAnswersExactly) {
  const json golden = ReadJson("/tests/golden/prompts.json");
  ASSERT_EQ(golden["parse"].size(), 2u);
  for (const json& item : golden["parse"]) {
    ExpectParsed(item["text"], item["mode"], item["result"]);
  }
}

TEST(CompletionTest, ParsesTheAnswersOfTheNanoModelExactly) {
  const json golden = ReadJson("/models/nano/golden.json");
  int parsed = 0;
  for (const json& item : golden["cases"]) {
    if (item["parsed"].is_null()) continue;
    ExpectParsed(item["text"], item["thinking_mode"], item["parsed"]);
    ++parsed;
  }
  EXPECT_EQ(parsed, 32);
}

TEST(CompletionTest, AcceptsTheEmptyLineOfACallWithoutParameters) {
  const Result<Completion> parsed = ParseCompletion(
      "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"now\">\n\n</｜DSML｜ invoke>\n</｜DSML｜ "
      "calls>" +
          kEos,
      ThinkingMode::kChat);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->tool_calls[0].arguments, "{}");
}

TEST(CompletionTest, RefusesWhatThePublishedParserRefuses) {
  const std::string call =
      "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n"
      "<｜DSML｜ parameter name=\"a\" string=\"true\">1</｜DSML｜ parameter>\n"
      "</｜DSML｜ invoke>\n</｜DSML｜ calls>";
  const auto message = [](const std::string& text, ThinkingMode mode) {
    const Result<Completion> parsed = ParseCompletion(text, mode);
    return parsed.ok() ? "" : parsed.status().message();
  };
  const auto chat = [&](const std::string& text) { return message(text, ThinkingMode::kChat); };
  const auto thinking = [&](const std::string& text) {
    return message(text, ThinkingMode::kThinking);
  };
  EXPECT_EQ(chat(call + kEos), "");
  EXPECT_THAT(chat("no end"), HasSubstr("byte offset 6: found the end of the text"));
  EXPECT_THAT(chat(call), HasSubstr("expected \"<｜end▁of▁sentence｜>\""));
  EXPECT_THAT(chat(call + " " + kEos), HasSubstr("expected \"<｜end▁of▁sentence｜>\""));
  EXPECT_THAT(chat("x" + kEos + "y"), HasSubstr("found \"y\", expected \"the end"));
  EXPECT_THAT(chat("a</think>b" + kEos), HasSubstr("found '</think>' in the text"));
  EXPECT_THAT(thinking("no end of reasoning" + kEos), HasSubstr("</think> before any call"));
  EXPECT_THAT(thinking("r" + call + kEos), HasSubstr("</think> before any call"));
  std::string twice = call;
  const std::string parameter =
      "<｜DSML｜ parameter name=\"a\" string=\"false\">2</｜DSML｜ parameter>\n";
  twice.insert(twice.find("</｜DSML｜ invoke>"), parameter);
  EXPECT_THAT(chat(twice + kEos), HasSubstr("found parameter 'a' again"));
  std::string maybe = call;
  maybe.replace(maybe.find("\"true\""), 6, "\"yes!\"");
  EXPECT_THAT(chat(maybe + kEos), HasSubstr("expected \"\\\" string=\\\"true\\\">\""));
  for (size_t cut = call.find(" calls"); cut < call.size(); ++cut) {
    EXPECT_NE(chat(call.substr(0, cut) + kEos), "") << cut;
  }
}

}  // namespace
}  // namespace deepinfer
