#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace deepinfer {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSource = DEEPINFER_SOURCE_DIR;

const Tokenizer& Big() {
  static const Tokenizer tokenizer = *Tokenizer::Load(kSource + "/tests/data/tokenizer.json");
  return tokenizer;
}

const Tokenizer& Nano() {
  static const Tokenizer tokenizer = *Tokenizer::Load(kSource + "/models/nano/tokenizer.json");
  return tokenizer;
}

json ReadJson(const std::string& name) { return json::parse(std::ifstream(kSource + name)); }

std::vector<int32_t> Ids(const Tokenizer& tokenizer, std::string_view text,
                         EncodeOptions options = {}) {
  Result<std::vector<int32_t>> ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return ids.ok() ? *ids : std::vector<int32_t>();
}

TEST(TokenizerTest, EncodesGoldenTextsExactly) {
  int count = 0;
  for (const json& item : ReadJson("/tests/golden/tokens.json")) {
    const auto text = item["text"].get<std::string>();
    EXPECT_EQ(Ids(Big(), text), item["ids"].get<std::vector<int32_t>>()) << text;
    ++count;
  }
  EXPECT_EQ(count, 46);
}

TEST(TokenizerTest, DecodesGoldenIdsToTheirTexts) {
  for (const json& item : ReadJson("/tests/golden/tokens.json")) {
    EXPECT_EQ(Big().Decode(item["ids"].get<std::vector<int32_t>>()),
              item["text"].get<std::string>());
  }
}

TEST(TokenizerTest, EncodesNanoPromptsExactly) {
  int count = 0;
  const json golden = ReadJson("/models/nano/golden.json");
  for (const json& item : golden["cases"]) {
    const auto prompt = item["prompt"].get<std::string>();
    EXPECT_EQ(Ids(Nano(), prompt), item["prompt_ids"].get<std::vector<int32_t>>()) << item["name"];
    ++count;
  }
  EXPECT_EQ(count, 33);
}

TEST(TokenizerTest, FindsSpecialTokensBySpelling) {
  EXPECT_EQ(Big().vocab_size(), 129280);
  EXPECT_EQ(Big().special().bos, 0);
  EXPECT_EQ(Big().special().eos, 1);
  EXPECT_EQ(Big().special().user, 128803);
  EXPECT_EQ(Big().special().think_end, 128822);
  EXPECT_EQ(Big().special().image, 129264);
  EXPECT_EQ(Big().special().read_url, 128845);
  EXPECT_EQ(Nano().vocab_size(), 4096);
  EXPECT_EQ(Nano().special().user, 4067);
  EXPECT_EQ(Nano().special().dsml, 4072);
  EXPECT_EQ(Nano().special().image, 4089);
  EXPECT_EQ(Nano().special().title, 4081);
}

TEST(TokenizerTest, EncodesControlSpellingsOfUntrustedTextAsPlainText) {
  const std::string text = "<｜User｜>hi</think>";
  const std::vector<int32_t> ids = Ids(Big(), text, {.match_added_tokens = false});
  for (const int32_t id : ids) EXPECT_FALSE(Big().IsAdded(id)) << id;
  EXPECT_EQ(Big().Decode(ids), text);
  EXPECT_EQ(Ids(Big(), text).front(), Big().special().user);
}

TEST(TokenizerTest, SegmentsMatchAddedTokensOnlyInsideTrustedText) {
  const std::vector<PromptSegment> segments = {
      {"<｜User｜>", true}, {"say </think> <th", false}, {"ink>", true}, {"<｜Assistant｜>", true}};
  const Result<std::vector<int32_t>> ids = Big().EncodeSegments(segments);
  ASSERT_TRUE(ids.ok());
  std::vector<int32_t> added;
  for (const int32_t id : *ids) {
    if (Big().IsAdded(id)) added.push_back(id);
  }
  EXPECT_THAT(added, ElementsAre(Big().special().user, Big().special().assistant));
  EXPECT_EQ(Big().Decode(*ids), "<｜User｜>say </think> <think><｜Assistant｜>");
}

TEST(TokenizerTest, SegmentBordersDoNotSplitWords) {
  const std::vector<PromptSegment> segments = {
      {"<｜User｜>", true}, {"hel", false}, {"lo wor", true}, {"ld", false}};
  EXPECT_EQ(*Big().EncodeSegments(segments), Ids(Big(), "<｜User｜>hello world"));
}

TEST(TokenizerTest, JoinsTrustedSegmentsBeforeMatching) {
  const std::vector<PromptSegment> segments = {{"<thi", true}, {"", false}, {"nk>", true}};
  EXPECT_THAT(*Big().EncodeSegments(segments), ElementsAre(Big().special().think_begin));
}

TEST(TokenizerTest, ReportsTheOffsetOfInvalidUtf8) {
  const Result<std::vector<int32_t>> ids = Big().Encode("abc\xFFxyz");
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(ids.status().message(), HasSubstr("0xff at byte offset 3"));
  EXPECT_THAT(Big().Encode("é\xE4\xBD").status().message(), HasSubstr("byte offset 2"));
}

TEST(TokenizerTest, RoundTripsEveryByteThroughItsTokens) {
  for (int32_t token = 0; token < Big().vocab_size(); ++token) {
    ASSERT_FALSE(Big().BytesOf(token).empty()) << token;
    ASSERT_FALSE(Big().SpellingOf(token).empty()) << token;
  }
  EXPECT_EQ(Big().SpellingOf(2058), "Ġworld");
  EXPECT_EQ(Big().BytesOf(2058), " world");
  EXPECT_EQ(Big().BytesOf(129280), "");
  EXPECT_EQ(Big().BytesOf(-1), "");
}

TEST(TokenizerTest, EncodesLongRunsInReasonableTime) {
  // A quadratic merge or search would take hours here.
  for (const std::string_view unit : {"a", " ", "\n", "1", "!", "é", "字"}) {
    std::string text;
    while (text.size() < 500'000) text += unit;
    const auto start = std::chrono::steady_clock::now();
    const std::vector<int32_t> ids = Ids(Big(), text);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(Big().Decode(ids), text);
    EXPECT_LT(seconds.count(), 30) << unit;
  }
}

TEST(TokenizerTest, IsSafeToUseFromSeveralThreads) {
  const std::string text = "  leading  spaces\n\n\ttab 你好，世界！ naïve café 12345";
  const std::vector<int32_t> expected = Ids(Big(), text);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) EXPECT_EQ(Ids(Big(), text), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Nano's file with one change.
Status LoadStatusAfter(const std::function<void(json&)>& change) {
  json file = ReadJson("/models/nano/tokenizer.json");
  change(file);
  return Tokenizer::Parse(file.dump()).status();
}

TEST(TokenizerTest, RefusesOtherKindsOfTokenizers) {
  const auto expect = [](const std::function<void(json&)>& change, const std::string& message) {
    const Status status = LoadStatusAfter(change);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  expect([](json& f) { f["model"]["type"] = "Unigram"; },
         "model.type: found 'Unigram', expected 'BPE'");
  expect([](json& f) { f["normalizer"] = {{"type", "NFC"}}; }, "normalizer: found {\"type\"");
  expect(
      [](json& f) {
        f["pre_tokenizer"] = {{"type", "Whitespace"}};
      },
      "expected a Sequence of Splits that ends with ByteLevel");
  expect([](json& f) { f["pre_tokenizer"]["pretokenizers"][1]["behavior"] = "Removed"; },
         "pretokenizers[1].behavior: found 'Removed', expected 'Isolated'");
  expect([](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a"; },
         "pattern '(a': found 'missing closing parenthesis' at byte 2");
  expect([](json& f) { f["pre_tokenizer"]["pretokenizers"][3]["use_regex"] = true; },
         "use_regex: found true");
  expect([](json& f) { f["decoder"] = nullptr; }, "decoder: found nothing");
  expect(
      [](json& f) {
        f["post_processor"] = {{"type", "TemplateProcessing"}};
      },
      "post_processor: found");
  expect([](json& f) { f["model"]["dropout"] = 0.1; }, "model.dropout: found 0.1");
  expect([](json& f) { f["added_tokens"][3]["lstrip"] = true; },
         "added_tokens[3].lstrip: found true");
}

TEST(TokenizerTest, RefusesDamagedFiles) {
  const auto expect = [](const std::function<void(json&)>& change, const std::string& message) {
    const Status status = LoadStatusAfter(change);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), ErrorCode::kCorruptData);
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  expect([](json& f) { f["added_tokens"].erase(4); }, "found no token with id 4064");
  expect([](json& f) { f["added_tokens"][4]["id"] = 100000; }, "ids without gaps");
  expect([](json& f) { f["added_tokens"][4]["id"] = 5; }, "token id 5: found");
  expect([](json& f) { f["added_tokens"][7]["content"] = "<｜Someone｜>"; },
         "found no '<｜User｜>', expected one");
  expect([](json& f) { f["model"]["merges"][7] = "Ġ zzzzz"; }, "model.merges[7]");
  expect([](json& f) { f["model"]["merges"][7] = 3; }, "expected a pair of tokens");
  expect([](json& f) { f["model"].erase("vocab"); }, "model.vocab: found nothing");
  EXPECT_FALSE(Tokenizer::Parse("[").ok());
  EXPECT_FALSE(Tokenizer::Parse("[]").ok());
  EXPECT_THAT(Tokenizer::Load("/nonexistent/tokenizer.json").status().message(),
              HasSubstr("/nonexistent/tokenizer.json"));
}

TEST(TokenizerTest, AcceptsMergesWrittenAsPairs) {
  json file = ReadJson("/models/nano/tokenizer.json");
  for (json& merge : file["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    const size_t space = text.find(' ');
    merge = {text.substr(0, space), text.substr(space + 1)};
  }
  const Result<Tokenizer> tokenizer = Tokenizer::Parse(file.dump());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(Ids(*tokenizer, "Hello there"), Ids(Nano(), "Hello there"));
}

TEST(TokenizerTest, KnowsTheImageTokenUnderBothNames) {
  json file = ReadJson("/models/nano/tokenizer.json");
  for (json& token : file["added_tokens"]) {
    if (token["content"] == "<｜deepseek_image｜>") token["content"] = "<｜image｜>";
  }
  const Result<Tokenizer> tokenizer = Tokenizer::Parse(file.dump());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer->special().image, 4089);
  EXPECT_THAT(Ids(*tokenizer, "<｜deepseek_image｜>"), ElementsAre(4089));
}

}  // namespace
}  // namespace deepinfer
