#include "kernels/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_goldens.h"

namespace deepinfer {
namespace {

constexpr YarnScaling kReleased = {
    .factor = 16, .beta_fast = 32, .beta_slow = 1, .original_positions = 65536};

// cos and sin at the positions of a golden: {"POSITION": {"cos": [...], "sin": [...]}}
void ExpectFactors(const RopeTable& table, const nlohmann::json& golden) {
  for (const auto& [key, factors] : golden.items()) {
    const std::vector<int64_t> positions = {std::stoll(key)};
    std::vector<float> cos(static_cast<size_t>(table.num_pairs()));
    std::vector<float> sin(cos.size());
    table.Fill(positions, cos.data(), sin.data());
    const std::vector<float> expected_cos = Floats(factors["cos"]);
    const std::vector<float> expected_sin = Floats(factors["sin"]);
    for (size_t k = 0; k < cos.size(); ++k) {
      ASSERT_NEAR(cos[k], expected_cos[k], 1e-6) << "position " << key << " pair " << k;
      ASSERT_NEAR(sin[k], expected_sin[k], 1e-6) << "position " << key << " pair " << k;
    }
  }
}

TEST(RopeTableTest, WindowFrequenciesAreTheGoldensBitForBit) {
  const nlohmann::json golden = OpGoldens("ops_extra")["rope_window"];
  const RopeTable table(64, 10000);
  ExpectSameBits(table.inv_freq(), FloatsFromBits(golden["inv_freq_bits"]));
  ExpectFactors(table, golden["table"]);
  ExpectFactors(table, OpGoldens("ops")["rope_window_theta1e4_noyarn"]);
}

TEST(RopeTableTest, CompressedFrequenciesAreTheGoldensBitForBit) {
  const nlohmann::json golden = OpGoldens("ops_extra")["rope_compressed"];
  const RopeTable table(64, 160000, kReleased);
  ExpectSameBits(table.inv_freq(), FloatsFromBits(golden["inv_freq_bits"]));
  ExpectSameBits(table.inv_freq(), Floats(OpGoldens("ops")["yarn"]["inv_freq"]));
  ExpectFactors(table, golden["table"]);
  ExpectFactors(table, OpGoldens("ops")["rope_compressed_theta16e4_yarn"]);
}

TEST(RopeTableTest, VisionFrequenciesMatch) {
  const RopeTable table(32, 10000);
  ExpectSameBits(table.inv_freq(), Floats(OpGoldens("ops_extra")["vit_rope"]["inv_freq"]));
}

TEST(RopeTableTest, EveryRowIsThatOfItsPositionAlone) {
  const RopeTable table(16, 10000);
  const std::vector<int64_t> positions = {7, 0, 1048575};
  std::vector<float> cos(24);
  std::vector<float> sin(24);
  table.Fill(positions, cos.data(), sin.data());
  for (size_t row = 0; row < positions.size(); ++row) {
    std::vector<float> one_cos(8);
    std::vector<float> one_sin(8);
    table.Fill({&positions[row], 1}, one_cos.data(), one_sin.data());
    for (size_t k = 0; k < 8; ++k) {
      EXPECT_TRUE(SameBits(cos[row * 8 + k], one_cos[k]));
      EXPECT_TRUE(SameBits(sin[row * 8 + k], one_sin[k]));
    }
  }
}

}  // namespace
}  // namespace deepinfer
