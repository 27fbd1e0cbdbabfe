// tests/golden/ops.json and ops_extra.json as vectors (tests/golden/README.md).
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace deepinfer {

// `file`: "ops" or "ops_extra".
inline nlohmann::json OpGoldens(const std::string& file) {
  const std::string path = std::string(DEEPINFER_SOURCE_DIR) + "/tests/golden/" + file + ".json";
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  return nlohmann::json::parse(in);
}

// All numbers of an array, nested ones row by row; null stands for NaN.
inline std::vector<float> Floats(const nlohmann::json& array) {
  std::vector<float> out;
  for (const nlohmann::json& item : array) {
    if (item.is_array()) {
      const std::vector<float> inner = Floats(item);
      out.insert(out.end(), inner.begin(), inner.end());
    } else {
      out.push_back(item.is_null() ? std::numeric_limits<float>::quiet_NaN() : item.get<float>());
    }
  }
  return out;
}

inline std::vector<float> FloatsFromBits(const nlohmann::json& array) {
  std::vector<float> out;
  for (const nlohmann::json& bits : array)
    out.push_back(std::bit_cast<float>(bits.get<uint32_t>()));
  return out;
}

template <typename T>
std::vector<T> Integers(const nlohmann::json& array) {
  std::vector<T> out;
  for (const nlohmann::json& value : array) out.push_back(static_cast<T>(value.get<int64_t>()));
  return out;
}

inline bool SameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

inline void ExpectSameBits(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(SameBits(found[i], expected[i]))
        << "at " << i << ": found " << found[i] << ", expected " << expected[i];
  }
}

// Largest |found - expected| / |expected|; values below `floor` are compared with `floor`.
inline double MaxRelativeError(const std::vector<float>& found, const std::vector<float>& expected,
                               double floor = 1e-6) {
  EXPECT_EQ(found.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error =
        std::fabs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    worst = std::max(worst, error / std::max(std::fabs(static_cast<double>(expected[i])), floor));
  }
  return worst;
}

// bf16 values: how many differ; none may by more than one bf16 step.
inline int CountBf16Flips(const std::vector<float>& found, const std::vector<float>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  int flips = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto a = static_cast<int64_t>(std::bit_cast<uint32_t>(found[i]) >> 16);
    const auto b = static_cast<int64_t>(std::bit_cast<uint32_t>(expected[i]) >> 16);
    EXPECT_EQ(std::bit_cast<uint32_t>(found[i]) & 0xFFFF, 0u) << "not a bf16 value at " << i;
    EXPECT_LE(std::abs(a - b), 1) << "at " << i << ": " << found[i] << " vs " << expected[i];
    flips += a != b ? 1 : 0;
  }
  return flips;
}

}  // namespace deepinfer
