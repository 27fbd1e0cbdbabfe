#include "model/ngram_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

namespace deepinfer {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kSource = DEEPINFER_SOURCE_DIR;

json ReadJson(const std::string& name) { return json::parse(std::ifstream(kSource + name)); }

ModelConfig ReleaseConfig() {
  ModelConfig config;
  config.vocab_size = 129280;
  config.ngram_layers = {1, 14};
  config.ngram_table_rows = {384006168, 384016682};
  config.ngram_max_order = 4;
  config.ngram_vocab_size = 16000000;
  config.ngram_num_heads = 8;
  config.ngram_pad_token = 2;
  config.ngram_num_classes = 99092;
  return config;
}

ModelConfig NanoConfig() {
  ModelConfig config = ReleaseConfig();
  config.vocab_size = 4096;
  config.ngram_layers = {1, 2};
  config.ngram_table_rows = {9156, 9412};
  config.ngram_vocab_size = 1499;
  config.ngram_num_heads = 2;
  config.ngram_num_classes = 3424;
  return config;
}

const NgramLayout& Release() {
  static const NgramLayout layout = *NgramLayout::Derive(
      ReleaseConfig(), ReadJson("/tests/data/engram_token_map.json").get<std::vector<int32_t>>());
  return layout;
}

std::vector<int64_t> Flat(const json& grid) {
  std::vector<int64_t> values;
  for (const json& row : grid) {
    if (row.is_array()) {
      const std::vector<int64_t> inner = Flat(row);
      values.insert(values.end(), inner.begin(), inner.end());
    } else {
      values.push_back(row.is_string() ? std::stoll(row.get<std::string>()) : row.get<int64_t>());
    }
  }
  return values;
}

TEST(NgramLayoutTest, DerivesTheReleasedPrimesOffsetsAndMultipliers) {
  const json golden = ReadJson("/tests/golden/ops_extra.json")["engram_layout"];
  for (int table = 0; table < 2; ++table) {
    const auto at = static_cast<size_t>(table);
    EXPECT_EQ(Release().primes(table), Flat(golden["primes"][at]));
    EXPECT_EQ(Release().offsets(table), Flat(golden["offsets"][at]));
    EXPECT_EQ(Release().multipliers(table), Flat(golden["multipliers"][at]));
    EXPECT_EQ(Release().offsets(table).back() + Release().primes(table).back(),
              golden["rows"][at].get<int64_t>());
  }
}

TEST(NgramLayoutTest, HashesTheGoldenSequencesToTheirRows) {
  const json golden = ReadJson("/tests/golden/ops_extra.json")["engram_hash"];
  const std::vector<std::string> layers = {"1", "14"};
  int checked = 0;
  for (const json& item : golden) {
    const auto compressed = item["compressed"].get<std::vector<int32_t>>();
    for (int table = 0; table < 2; ++table) {
      const json& expected = item["rows"][layers[static_cast<size_t>(table)]];
      for (size_t p = 0; p < compressed.size(); ++p) {
        std::vector<int32_t> classes(4, NgramLayout::kDeadClass);
        for (size_t back = 0; back < 4 && back <= p; ++back) classes[back] = compressed[p - back];
        std::vector<int64_t> rows(24);
        Release().Rows(table, classes, rows);
        EXPECT_EQ(rows, expected[p].get<std::vector<int64_t>>()) << item["note"] << " at " << p;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 60);
}

TEST(NgramLayoutTest, BlocksEverythingOlderThanADeadPosition) {
  const int32_t dead = NgramLayout::kDeadClass;
  const auto rows_of = [](std::vector<int32_t> classes) {
    std::vector<int64_t> rows(24);
    Release().Rows(0, classes, rows);
    return rows;
  };
  EXPECT_EQ(rows_of({5, dead, 7, 8}), rows_of({5, dead, dead, dead}));
  EXPECT_EQ(rows_of({dead, 6, 7, 8}), rows_of({2, 2, 2, 2}));
  EXPECT_NE(rows_of({5, 6, dead, 8}), rows_of({5, dead, dead, 8}));
}

TEST(NgramLayoutTest, DerivesWhatTheNanoModelCarriesInItsFile) {
  const json file = ReadJson("/models/nano/engram.json");
  const Result<NgramLayout> derived =
      NgramLayout::Derive(NanoConfig(), file["token_map"].get<std::vector<int32_t>>());
  ASSERT_TRUE(derived.ok()) << derived.status().message();
  const Result<NgramLayout> parsed = NgramLayout::Parse(NanoConfig(), file.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  ASSERT_EQ(parsed->num_tables(), 2);
  for (int table = 0; table < 2; ++table) {
    EXPECT_EQ(derived->primes(table), parsed->primes(table));
    EXPECT_EQ(derived->offsets(table), parsed->offsets(table));
    EXPECT_EQ(derived->multipliers(table), parsed->multipliers(table));
    EXPECT_EQ(parsed->offsets(table), Flat(file["offsets"][static_cast<size_t>(table)]));
  }
}

TEST(NgramLayoutTest, ReadsTheFileOfTheTinyModel) {
  const json file = ReadJson("/tests/golden/tiny/engram.json");
  ModelConfig config = NanoConfig();
  config.vocab_size = 512;
  const auto map = file["token_map"].get<std::vector<int>>();
  config.ngram_num_classes = 1 + *std::max_element(map.begin(), map.end());
  config.ngram_vocab_size = 97;
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<int64_t> primes = Flat(file["primes"][i]);
    config.ngram_table_rows[i] = std::accumulate(primes.begin(), primes.end(), int64_t{0});
  }
  const Result<NgramLayout> layout = NgramLayout::Parse(config, file.dump());
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_EQ(layout->multipliers(0).front(), 29662608052400909);
}

TEST(NgramLayoutTest, RefusesFilesThatDoNotFitTheConfiguration) {
  const auto expect = [](const std::function<void(json&)>& change, const std::string& message) {
    json file = ReadJson("/models/nano/engram.json");
    change(file);
    const Status status = NgramLayout::Parse(NanoConfig(), file.dump()).status();
    ASSERT_FALSE(status.ok()) << message;
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  expect([](json& f) { f.erase("primes"); }, "primes: found nothing, expected a list of 2");
  expect([](json& f) { f["primes"][1][2].push_back(7); },
         "primes[1][2]: found a list of 3, expected a list of 2");
  expect([](json& f) { f["primes"][0][0][0] = 1489; },
         "primes[0]: found a sum of 9146, expected the 9156 rows of the table of layer 1");
  expect([](json& f) { f["primes"][0][0][0] = -4; }, "primes[0]: found -4");
  expect([](json& f) { f["primes"][0][0][0] = INT64_MAX; }, "primes[0]: found 9223372036854775807");
  expect([](json& f) { f["multipliers"][0][1] = "12x"; },
         "multipliers[0][1]: found \"12x\", expected an integer");
  expect([](json& f) { f["multipliers"][0][1] = 0; }, "multipliers[0]: found 0, expected 1 to");
  expect([](json& f) { f["multipliers"][1][3] = "9223372036854775807"; },
         "multipliers[1]: found 9223372036854775807");
  expect([](json& f) { f["token_map"][17] = 4294967296; },
         "token_map[17]: found class 4294967296, expected 0 to 3423");
  expect([](json& f) { f["token_map"].erase(0); },
         "token_map: found a list of 4095, expected a list of 4096");
  expect([](json& f) { f["offsets"][1][5] = 3; }, "offsets[1]: found other values");
  EXPECT_FALSE(NgramLayout::Parse(NanoConfig(), "{").ok());
  EXPECT_FALSE(NgramLayout::Parse(NanoConfig(), "[]").ok());
}

TEST(NgramLayoutTest, RefusesConfigurationsWithoutASolution) {
  const auto status_of = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = NanoConfig();
    change(config);
    const json file = ReadJson("/models/nano/engram.json");
    return NgramLayout::Derive(config, file["token_map"].get<std::vector<int32_t>>()).status();
  };
  EXPECT_TRUE(status_of([](ModelConfig&) {}).ok());
  EXPECT_FALSE(status_of([](ModelConfig& c) { c.ngram_vocab_size = INT64_MAX; }).ok());
  EXPECT_FALSE(status_of([](ModelConfig& c) { c.ngram_table_rows.pop_back(); }).ok());
  EXPECT_FALSE(status_of([](ModelConfig& c) { c.ngram_table_rows[1] = 9413; }).ok());
  EXPECT_FALSE(status_of([](ModelConfig& c) { c.ngram_num_classes = 3425; }).ok());
  EXPECT_FALSE(status_of([](ModelConfig& c) { c.ngram_pad_token = 4096; }).ok());
  EXPECT_FALSE(status_of([](ModelConfig& c) { c.vocab_size = 4097; }).ok());
}

}  // namespace
}  // namespace deepinfer
