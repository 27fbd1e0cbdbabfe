// deepinfer generate as its users run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_deepinfer.h"

namespace deepinfer {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<json> JsonLines(const std::string& text) {
  std::vector<json> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

TEST(GenerateTest, APromptIsAnsweredWithFiguresOnStderr) {
  const Outcome run = Deepinfer("generate --temperature 0 --seed 5 'Hello!'");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "Hello! How can I help you today?\n");
  EXPECT_THAT(run.err, AllOf(HasSubstr("prompt 6 tokens"), HasSubstr("output 10 tokens"),
                             HasSubstr("compact"), HasSubstr("seed 5"), HasSubstr("peak memory")));
  EXPECT_THAT(run.err, Not(HasSubstr("\x1b")));
}

TEST(GenerateTest, AProfileSaysWhatTheTimeWentTo) {
  const Outcome run = Deepinfer("generate --max-tokens 3 --profile 'Hello!'");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, AllOf(HasSubstr("calls"), HasSubstr("matmul fp4"), HasSubstr("attention")));
  EXPECT_THAT(Deepinfer("generate --max-tokens 3 'Hello!'").err, Not(HasSubstr("matmul")));
}

TEST(GenerateTest, ThePromptMayComeFromStdinAFileOrMessages) {
  const ScratchDir scratch;
  WriteText(scratch / "prompt", "Hello!");
  WriteText(scratch / "messages", R"([{"role":"user","content":"Hello!"}])");
  const std::string expected = "Hello! How can I help you today?\n";
  EXPECT_EQ(Deepinfer("generate --temperature 0", "", "Hello!\n").out, expected);
  EXPECT_EQ(Deepinfer("generate --temperature 0 --file " + Quoted(scratch / "prompt")).out,
            expected);
  EXPECT_EQ(Deepinfer("generate --temperature 0 --messages " + Quoted(scratch / "messages")).out,
            expected);
  EXPECT_EQ(Deepinfer("generate", "", "\n").exit_code, 2);
}

TEST(GenerateTest, ContradictionsAreWrongUsage) {
  const ScratchDir scratch;
  WriteText(scratch / "messages", R"([{"role":"user","content":"Hello!"}])");
  const std::string messages = Quoted(scratch / "messages");
  for (const char* arguments :
       {"generate --out x Hello", "generate --jsonl x Hello", "generate --effort high Hello",
        "generate --raw --thinking Hello", "generate --logit-bias 5 Hello",
        "generate --temperature -1 Hello", "generate --max-num-seqs 0 --jsonl x",
        "generate --yoco-prefill-keep-tokens 3 Hello"}) {
    const Outcome run = Deepinfer(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments;
    EXPECT_TRUE(IsOneSentence(run.err)) << arguments << ": " << run.err;
    EXPECT_THAT(run.out, IsEmpty());
  }
  EXPECT_EQ(Deepinfer("generate Hi --messages " + messages).exit_code, 2);
  EXPECT_EQ(Deepinfer("generate --system S --messages " + messages).exit_code, 2);
}

class JsonlTest : public testing::Test {
 protected:
  Outcome Run(const std::string& lines, const std::string& more = "") {
    WriteText(scratch_ / "in.jsonl", lines);
    return Deepinfer("generate --jsonl " + Quoted(scratch_ / "in.jsonl") + " " + more);
  }

  ScratchDir scratch_;
};

TEST_F(JsonlTest, EveryLineHasItsResultInOrder) {
  std::string lines = "\xEF\xBB\xBF";
  for (int i = 0; i < 40; ++i) {
    lines += fmt::format(R"({{"id":{},"prompt":"Hello number {}","max_tokens":{},"seed":{}}}{})", i,
                         i, 1 + i * 7 % 30, i, i % 2 == 0 ? "\r\n" : "\n\n");
  }
  const Path out = scratch_ / "out.jsonl";
  const Outcome run = Run(lines, "--max-num-seqs 5 --out " + Quoted(out));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("[40 lines, 0 failed"));
  const std::string written = *ReadFile(out);
  const std::vector<json> results = JsonLines(written);
  ASSERT_EQ(results.size(), 40u);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(results[static_cast<size_t>(i)]["id"], i);
    EXPECT_EQ(results[static_cast<size_t>(i)]["seed"], i);
  }
  EXPECT_FALSE(FileExists(out.string() + ".tmp"));

  // The same alone, and with stdin and stdout.
  EXPECT_TRUE(Run(lines, "--max-num-seqs 1").out == written);
  EXPECT_TRUE(Deepinfer("generate --jsonl - --out -", "", lines).out == written);
}

TEST_F(JsonlTest, ABadLineIsAnErrorInItsPlaceAndTheOthersRun) {
  const Outcome run = Run(
      R"({"id":"a","prompt":"Hello!","temperature":0}
not json
{"id":"c","prompt":"Hello!","temperature":-1}
{"id":"a","prompt":"Hello!","temperature":0,"max_tokens":2,"logprobs":1}
{"id":"e","prompt":"Hello!","top_k":"many"})");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("found 3 of 5 lines that failed"));
  const std::vector<json> results = JsonLines(run.out);
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[0]["text"], "Hello! How can I help you today?");
  EXPECT_EQ(results[0]["finish_reason"], "stop");
  EXPECT_EQ(results[0]["usage"]["completion_tokens"], 10);
  EXPECT_FALSE(results[0].contains("logprobs"));
  EXPECT_TRUE(results[1]["id"].is_null());
  EXPECT_EQ(results[1]["line"], 2);
  EXPECT_EQ(results[1]["error"]["code"], "InvalidArgument");
  EXPECT_EQ(results[2]["id"], "c");
  EXPECT_EQ(results[3]["id"], "a");
  EXPECT_EQ(results[3]["finish_reason"], "length");
  EXPECT_EQ(results[3]["logprobs"].size(), 2u);
  EXPECT_EQ(results[3]["logprobs"][0]["top"].size(), 1u);
  EXPECT_EQ(results[4]["error"]["message"], "top_k: found \"many\", expected an integer");
}

TEST_F(JsonlTest, FlagsAreDefaultsOfLinesThatDoNotSay) {
  const Outcome run = Run(
      R"({"prompt":"Hello!"}
{"prompt":"Hello!","max_tokens":4,"seed":3})",
      "--max-tokens 2 --seed 9");
  const std::vector<json> results = JsonLines(run.out);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0]["tokens"].size(), 2u);
  EXPECT_EQ(results[0]["seed"], 9);
  EXPECT_EQ(results[1]["tokens"].size(), 4u);
  EXPECT_EQ(results[1]["seed"], 3);
}

TEST_F(JsonlTest, APromptThatIsTooLongFailsByItself) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "word ";
  const Outcome run = Run(R"({"id":1,"prompt":")" + text + "\"}\n" + R"({"id":2,"prompt":"Hi"})",
                          "--max-model-len 100");
  EXPECT_EQ(run.exit_code, 1);
  const std::vector<json> results = JsonLines(run.out);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(results[0]["error"]["message"].get<std::string>(),
              HasSubstr("expected fewer than the context of 100"));
  EXPECT_TRUE(results[1].contains("text"));
}

TEST_F(JsonlTest, AnEmptyFileGivesAnEmptyFile) {
  const Path out = scratch_ / "out.jsonl";
  EXPECT_EQ(Run("\n\n", "--out " + Quoted(out)).exit_code, 0);
  EXPECT_EQ(*ReadFile(out), "");
  EXPECT_EQ(Deepinfer("generate --jsonl /no/such/file").exit_code, 1);
}

// Endless answers, stopped after a while.
TEST_F(JsonlTest, CtrlCKeepsWhatIsDoneUnderAnotherName) {
  std::string lines = R"({"id":0,"prompt":"Hello!","max_tokens":3})";
  for (int i = 1; i < 200; ++i) {
    lines += fmt::format("\n{{\"id\":{},\"prompt\":\"Hello!\",\"logit_bias\":{{\"1\":-100}}}}", i);
  }
  WriteText(scratch_ / "in.jsonl", lines);
  const Path out = scratch_ / "out.jsonl";
  // Once the first result is there.  The shell becomes the program, so $$ is its id.
  const std::string interrupt = fmt::format(
      "(until grep -qs length '{}.tmp'; do sleep 0.05; done; sleep 0.1; kill -INT $$) & exec",
      out.string());
  const Outcome run = Deepinfer("generate --max-num-seqs 2 --jsonl " +
                                    Quoted(scratch_ / "in.jsonl") + " --out " + Quoted(out),
                                interrupt);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("stopped by Ctrl-C"), HasSubstr("out.jsonl.partial")));
  EXPECT_FALSE(FileExists(out));
  EXPECT_FALSE(FileExists(out.string() + ".tmp"));
  const std::vector<json> results = JsonLines(*ReadFile(out.string() + ".partial"));
  ASSERT_GE(results.size(), 3u);
  EXPECT_EQ(results[0]["finish_reason"], "length");
  EXPECT_EQ(results[2]["finish_reason"], "cancelled");
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i]["id"], i);
}

}  // namespace
}  // namespace deepinfer
