#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace deepinfer {
namespace {

Result<std::unique_ptr<int>> Half(int x) {
  if (x % 2 != 0) return InvalidArgument("found an odd number, expected an even one");
  return std::make_unique<int>(x / 2);
}

Result<int> Quarter(int x) {
  ASSIGN_OR_RETURN(std::unique_ptr<int> half, Half(x));
  ASSIGN_OR_RETURN(std::unique_ptr<int> quarter, Half(*half));
  return *quarter;
}

TEST(StatusTest, ResultCarriesMoveOnlyValuesThroughAssignOrReturn) {
  ASSERT_TRUE(Quarter(8).ok());
  EXPECT_EQ(*Quarter(8), 2);
}

TEST(StatusTest, AssignOrReturnPassesTheFirstErrorOn) {
  const Result<int> result = Quarter(6);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.status().message(), "found an odd number, expected an even one");
}

TEST(StatusTest, ContextIsPutInFrontAndOkStaysOk) {
  EXPECT_TRUE(Status::Ok().WithContext("file").ok());
  EXPECT_EQ(NotFound("no such tensor").WithContext("a.safetensors").message(),
            "a.safetensors: no such tensor");
}

}  // namespace
}  // namespace deepinfer
