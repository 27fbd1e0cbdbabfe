#include "verify/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "verify/replay_golden.h"
#include "verify/run_plan.h"

namespace deepinfer {
namespace {

const Path kTiny = Path(DEEPINFER_SOURCE_DIR) / "tests/golden/tiny";

class ReplayGoldenTest : public testing::Test {
 protected:
  // The cases of the shortest prompt; the slow test takes all.
  void Load(Numerics numerics) {
    numerics_ = numerics;
    Result<ReplayFolder> folder = ReplayFolder::Open(kTiny);
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    folder_.emplace(*std::move(folder));
    std::erase_if(folder_->prompts, [](const auto& prompt) { return prompt.first != "n40"; });
    Result<std::unique_ptr<ModelInstance>> model =
        ModelInstance::Load({.dir = kTiny, .numerics = numerics, .max_sequences = kRunSequences});
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
  }

  GoldenLine Verify() {
    const Result<std::vector<GoldenLine>> lines = VerifyReplay(*model_, *folder_, numerics_);
    EXPECT_TRUE(lines.ok() && lines->size() == 1);
    return lines.ok() ? lines->front() : GoldenLine{};
  }

  ReplayCase& CaseNamed(std::string_view end) {
    return *std::ranges::find_if(folder_->cases, [&](const ReplayCase& c) {
      return c.numerics == numerics_ && c.tag.ends_with(end);
    });
  }

  Numerics numerics_ = Numerics::kRelease;
  std::optional<ReplayFolder> folder_;
  std::unique_ptr<ModelInstance> model_;
};

TEST_F(ReplayGoldenTest, ModesChunksAndHitsGiveTheRecordedFp32LogitsAndStates) {
  Load(Numerics::kFp32);
  const GoldenLine line = Verify();
  EXPECT_TRUE(line.ok) << line.first;
  EXPECT_EQ(line.cases, 28);
}

TEST_F(ReplayGoldenTest, ModesChunksAndHitsGiveTheRecordedReleaseLogitsAndStates) {
  Load(Numerics::kRelease);
  const GoldenLine line = Verify();
  EXPECT_TRUE(line.ok) << line.first;
  EXPECT_EQ(line.cases, 28);
}

TEST_F(ReplayGoldenTest, AHitThatIsComputedAnotherWayIsReported) {
  Load(Numerics::kRelease);
  // The windows of the last hit come back by an approximate replay instead of a snapshot.
  CaseNamed("n40.exact.hit8.snapshot").windows = ReplayRecord::Kind::kBounded;
  const GoldenLine line = Verify();
  EXPECT_FALSE(line.ok);
  EXPECT_NE(line.first.find("n40.exact.hit8.snapshot: "), std::string::npos) << line.first;
}

TEST_F(ReplayGoldenTest, WrongFloorsAndOtherLogitsAreReported) {
  Load(Numerics::kRelease);
  ReplayCase& mask = CaseNamed("n40.mask.k8");
  mask.prefill.keep = 9;
  GoldenLine line = Verify();
  EXPECT_FALSE(line.ok);
  EXPECT_NE(line.first.find("n40.mask.k8: floors: found 0 and 31, expected 0 and 32"),
            std::string::npos)
      << line.first;
  mask.floors.decoder = 31;
  line = Verify();
  EXPECT_FALSE(line.ok);
  EXPECT_EQ(line.first.find("floors"), std::string::npos) << line.first;
}

}  // namespace
}  // namespace deepinfer
