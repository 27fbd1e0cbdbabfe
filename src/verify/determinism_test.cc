#include "verify/determinism.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace deepinfer {
namespace {

std::unique_ptr<ModelInstance> LoadOrDie(const char* dir, const char* weights_dir,
                                         Numerics numerics) {
  const Path root = DEEPINFER_SOURCE_DIR;
  Result<std::unique_ptr<ModelInstance>> model =
      ModelInstance::Load({.dir = root / dir,
                           .weights_dir = root / weights_dir,
                           .numerics = numerics,
                           .max_sequences = kRunSequences});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *std::move(model) : nullptr;
}

struct Checkpoint {
  const char* name;
  const char* dir;  // under the source tree
  const char* weights_dir;
  Numerics numerics;
  int64_t tokens;
  bool quick;
};

class DeterminismTest : public testing::TestWithParam<Checkpoint> {};

TEST_P(DeterminismTest, EveryAxisIsEqualInEveryBit) {
  const Checkpoint& checkpoint = GetParam();
  const std::unique_ptr<ModelInstance> model =
      LoadOrDie(checkpoint.dir, checkpoint.weights_dir, checkpoint.numerics);
  ASSERT_NE(model, nullptr);
  const auto reports = VerifyDeterminism(
      *model, {.tokens = checkpoint.tokens, .quick = checkpoint.quick},
      [](const AxisReport& report) {
        fmt::print("{:<22} {:>4} {:>7.2f} s  {}  {}\n", report.name, report.comparisons,
                   report.seconds, report.scope, report.difference.value_or("equal"));
        return Status::Ok();
      });
  ASSERT_TRUE(reports.ok()) << reports.status().message();
  for (const AxisReport& report : *reports) {
    EXPECT_FALSE(report.difference.has_value()) << report.name << ": " << *report.difference;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Checkpoints, DeterminismTest,
    testing::Values(Checkpoint{"tiny", "tests/golden/tiny", "tests/golden/tiny", Numerics::kRelease,
                               100, false},
                    Checkpoint{"nano", "models/nano", "models/nano", Numerics::kRelease, 0, false}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace deepinfer
