#include "inspect/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/scratch_dir.h"

namespace deepinfer {
namespace {

using testing::HasSubstr;

// A checkpoint of one tensor of each checked type, with bad values where the test wants them.
class ScanTest : public testing::Test {
 protected:
  static constexpr int64_t kCount = (int64_t{16} << 20) + 5;  // two pieces of one-byte elements

  ScratchDir dir_;
  std::vector<uint8_t> scales_ = std::vector<uint8_t>(kCount, 120);
  std::vector<uint8_t> codes_ = std::vector<uint8_t>(kCount, 0x7E);
  std::vector<uint16_t> bf16_ = std::vector<uint16_t>(100, 0x3F80);
  std::vector<float> f32_ = std::vector<float>(101, 3e38f);

  Result<Checkpoint> Store() {
    const std::vector<TensorSpec> specs = {
        {.name = "odd", .dtype = DType::kU8, .shape = {1}},  // leaves the others unaligned
        {.name = "bf16", .dtype = DType::kBf16, .shape = {100}},
        {.name = "codes", .dtype = DType::kF8E4M3, .shape = {kCount}},
        {.name = "f32", .dtype = DType::kF32, .shape = {101}},
        {.name = "scales", .dtype = DType::kF8E8M0, .shape = {kCount}}};
    ASSIGN_OR_RETURN(SafetensorsWriter writer,
                     SafetensorsWriter::Create(dir_ / "model.safetensors", specs));
    RETURN_IF_ERROR(writer.Skip(1));
    RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(bf16_))));
    RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(codes_))));
    RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(f32_))));
    RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(scales_))));
    RETURN_IF_ERROR(writer.Commit());
    return Checkpoint::Open(dir_.path());
  }
};

TEST_F(ScanTest, GoodValuesGiveNoProblems) {
  const Result<Checkpoint> checkpoint = Store();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  int64_t reported = 0;
  const Result<ScanReport> report = ScanCheckpoint(
      *checkpoint, {.threads = 3, .on_progress = [&](int64_t done, int64_t) { reported = done; }});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->problems.empty());
  EXPECT_EQ(report->tensors, 5);
  EXPECT_EQ(report->bytes, 2 * kCount + 200 + 404 + 1);
  EXPECT_EQ(reported, report->bytes);
}

TEST_F(ScanTest, EveryBadValueIsFoundAndTheFirstIsNamed) {
  scales_[kCount - 1] = 201;
  scales_[kCount - 2] = 0;
  codes_[7] = 0xFF;
  codes_[kCount - 1] = 0x7F;
  bf16_[99] = 0x7F80;
  f32_[3] = std::numeric_limits<float>::quiet_NaN();
  const Result<Checkpoint> checkpoint = Store();
  ASSERT_TRUE(checkpoint.ok());
  for (const int threads : {1, 4}) {
    const Result<ScanReport> report = ScanCheckpoint(*checkpoint, {.threads = threads});
    ASSERT_TRUE(report.ok());
    ASSERT_EQ(report->problems.size(), 4u);
    EXPECT_EQ(report->problems[0].tensor, "bf16");
    EXPECT_THAT(report->problems[0].found, HasSubstr("inf at element 99"));
    EXPECT_THAT(report->problems[1].found, HasSubstr("NaN code 0xFF at element 7"));
    EXPECT_EQ(report->problems[1].count, 2);
    EXPECT_THAT(report->problems[2].found, HasSubstr("nan at element 3"));
    EXPECT_EQ(report->problems[3].found, "scale byte 0 at element " + std::to_string(kCount - 2));
    EXPECT_EQ(report->problems[3].expected, "41 to 200");
  }
}

TEST_F(ScanTest, AScanCanBeStopped) {
  const Result<Checkpoint> checkpoint = Store();
  ASSERT_TRUE(checkpoint.ok());
  const Result<ScanReport> report =
      ScanCheckpoint(*checkpoint, {.threads = 1, .should_stop = [] { return true; }});
  // A small scan may be over before it is asked.
  EXPECT_TRUE(report.ok() || report.status().code() == ErrorCode::kCancelled);
}

}  // namespace
}  // namespace deepinfer
