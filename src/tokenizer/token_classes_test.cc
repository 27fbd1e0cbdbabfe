#include "tokenizer/token_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using nlohmann::json;

const std::string kSource = DEEPINFER_SOURCE_DIR;

std::vector<int32_t> ClassesOf(const std::string& file) {
  const Result<Tokenizer> tokenizer = Tokenizer::Load(kSource + file);
  EXPECT_TRUE(tokenizer.ok());
  Result<std::vector<int32_t>> classes = TokenClasses(*tokenizer);
  EXPECT_TRUE(classes.ok());
  return *std::move(classes);
}

TEST(TokenClassesTest, EqualTheReleasedMap) {
  const std::vector<int32_t> classes = ClassesOf("/tests/data/tokenizer.json");
  const auto expected = json::parse(std::ifstream(kSource + "/tests/data/engram_token_map.json"))
                            .get<std::vector<int32_t>>();
  EXPECT_EQ(classes, expected);
  EXPECT_EQ(*std::max_element(classes.begin(), classes.end()) + 1, 99092);
}

TEST(TokenClassesTest, EqualTheMapOfTheNanoModel) {
  const json file = json::parse(std::ifstream(kSource + "/models/nano/engram.json"));
  EXPECT_EQ(ClassesOf("/models/nano/tokenizer.json"),
            file["token_map"].get<std::vector<int32_t>>());
}

}  // namespace
}  // namespace deepinfer
