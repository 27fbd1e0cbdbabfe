#include "tokenizer/python_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepinfer {
namespace {

using ::testing::HasSubstr;

std::string Again(std::string_view text) {
  const Result<JsonValue> value = ParseJson(text);
  EXPECT_TRUE(value.ok()) << text << ": " << value.status().message();
  return value.ok() ? PythonDump(*value) : "";
}

TEST(PythonJsonTest, WritesPythonsSeparatorsAndKeepsKeyOrder) {
  EXPECT_EQ(Again(R"({"b":[1,2,{}],"a":null,"c":[],"d":{"x":true,"y":false}})"),
            R"({"b": [1, 2, {}], "a": null, "c": [], "d": {"x": true, "y": false}})");
}

TEST(PythonJsonTest, EscapesOnlyWhatPythonEscapes) {
  EXPECT_EQ(Again(R"("é\u00e9\/\"\\\n\r\t\b\f\u0001\u001f\u007f\ud83d\ude80\u2028")"),
            "\"éé/\\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u001f\x7f🚀\u2028\"");
}

// Values of repr() in CPython.
TEST(PythonJsonTest, SpellsNumbersLikePython) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},
      {"-0", "0"},
      {"-17", "-17"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"18446744073709551616", "18446744073709551616"},
      {"0.0", "0.0"},
      {"-0.0", "-0.0"},
      {"1.0", "1.0"},
      {"1e0", "1.0"},
      {"2.50", "2.5"},
      {"1e5", "100000.0"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"1.5e-7", "1.5e-07"},
      {"1e15", "1000000000000000.0"},
      {"1234567890123456.7", "1234567890123456.8"},
      {"1e16", "1e+16"},
      {"12345678901234567.0", "1.2345678901234568e+16"},
      {"1e100", "1e+100"},
      {"5e-324", "5e-324"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"0.1", "0.1"},
      {"3.141592653589793", "3.141592653589793"},
      {"123.456", "123.456"},
      {"-1e-3", "-0.001"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Again(text), expected) << text;
}

TEST(PythonJsonTest, KeepsTheLastOfRepeatedKeysAtTheFirstPlace) {
  EXPECT_EQ(Again(R"({"a":1,"b":2,"a":3,"c":4,"b":5})"), R"({"a": 3, "b": 5, "c": 4})");
}

TEST(PythonJsonTest, RefusesWhatIsNoJson) {
  for (const char* text :
       {"", "{", "[1,]", "nul", "1 2", "{'a':1}", "\"\xFF\"", "1e999", "\"\\ud800\""}) {
    EXPECT_FALSE(ParseJson(text).ok()) << text;
  }
  EXPECT_THAT(ParseJson("[1, x]").status().message(), HasSubstr("byte offset 5"));
}

TEST(PythonJsonTest, RefusesBottomlessNesting) {
  const std::string deep = std::string(512, '[') + std::string(512, ']');
  EXPECT_EQ(Again(deep), deep);
  EXPECT_THAT(ParseJson("[" + deep + "]").status().message(), HasSubstr("deeper than 512"));
  EXPECT_FALSE(ParseJson(std::string(1'000'000, '[')).ok());
}

}  // namespace
}  // namespace deepinfer
