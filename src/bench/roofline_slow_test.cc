#include <gtest/gtest.h>

#include "bench/roofline.h"
#include "kernels/select.h"

namespace deepinfer {
namespace {

TEST(RooflineTest, EveryRateOfThisMachineIsPositive) {
  ExecContext context(**SelectKernels(""), 2);
  const Roofline roofline = MeasureRoofline(context);
  EXPECT_FALSE(roofline.processor.empty());
  for (const auto* rates : {&roofline.dram_gbps, &roofline.l3_gbps, &roofline.l2_gbps,
                            &roofline.bf16_gmacs, &roofline.int8_gmacs}) {
    ASSERT_EQ(rates->size(), 2U);
    for (const double rate : *rates) EXPECT_GT(rate, 0);
  }
}

TEST(DiskTest, DirectReadsAreMeasuredOrRefusedByName) {
  const Result<std::vector<DiskRate>> rates = MeasureDisk(".");
  if (rates.ok()) {
    EXPECT_EQ(rates->size(), 6U);
    for (const DiskRate& rate : *rates) EXPECT_GT(rate.gbps, 0) << rate.pattern << rate.depth;
  } else {
    // A file system in memory, say.
    EXPECT_NE(rates.status().message().find("cannot"), std::string::npos);
  }
  EXPECT_FALSE(MeasureDisk("/no/such/directory").ok());
}

}  // namespace
}  // namespace deepinfer
