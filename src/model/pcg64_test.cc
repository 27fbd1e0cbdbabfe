#include "model/pcg64.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace deepinfer {
namespace {

TEST(Pcg64Test, DrawsTheSameBoundedIntegersAsNumpy) {
  std::ifstream file(std::string(DEEPINFER_SOURCE_DIR) + "/tests/golden/ops_extra.json");
  const nlohmann::json golden = nlohmann::json::parse(file)["pcg64_integers"];
  int cases = 0;
  for (const nlohmann::json& item : golden) {
    Pcg64 generator(item["seed"].get<uint64_t>());
    ASSERT_EQ(item["low"].get<int64_t>(), 0);
    const uint64_t bound = std::stoull(item["high"].get<std::string>());
    for (const nlohmann::json& value : item["values"]) {
      ASSERT_EQ(generator.Below(bound), std::stoull(value.get<std::string>()))
          << "seed " << item["seed"] << " bound " << bound;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 70);
}

}  // namespace
}  // namespace deepinfer
