#include "io/file.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace deepinfer {
namespace {

TEST(FileTest, WrittenFileIsVisibleOnlyAfterCommit) {
  const ScratchDir scratch;
  const Path path = scratch / "commit.bin";
  Result<FileWriter> writer = FileWriter::Create(path);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Write("abc").ok());
  EXPECT_FALSE(FileExists(path));
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(*ReadFile(path), "abc");
}

TEST(FileTest, AbandonedWriterLeavesNothingBehind) {
  const ScratchDir scratch;
  const Path path = scratch / "abandoned.bin";
  { ASSERT_TRUE(FileWriter::Create(path)->Write("abc").ok()); }
  EXPECT_FALSE(FileExists(path));
  EXPECT_FALSE(FileExists(path.string() + ".tmp"));
}

TEST(FileTest, AFileCanBeCommittedUnderAnotherName) {
  const ScratchDir scratch;
  Result<FileWriter> writer = FileWriter::Create(scratch / "whole");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Write("abc").ok());
  ASSERT_TRUE(writer->CommitAs(scratch / "whole.partial").ok());
  EXPECT_EQ(*ReadFile(scratch / "whole.partial"), "abc");
  EXPECT_FALSE(FileExists(scratch / "whole"));
  EXPECT_FALSE(FileExists(scratch / "whole.tmp"));
}

TEST(FileTest, SkippedBytesReadAsZeros) {
  const ScratchDir scratch;
  const Path path = scratch / "sparse.bin";
  Result<FileWriter> writer = FileWriter::Create(path);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Write("a").ok());
  ASSERT_TRUE(writer->Skip(3).ok());
  ASSERT_TRUE(writer->Write("b").ok());
  EXPECT_EQ(writer->size(), 5u);
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(*ReadFile(path), std::string("a\0\0\0b", 5));
  const Result<MappedFile> mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->bytes()[4], std::byte{'b'});
}

TEST(FileTest, MissingFileIsNotFoundAndADirectoryIsRefused) {
  EXPECT_EQ(ReadFile("/no/such/file").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(MappedFile::Open("/tmp").status().code(), ErrorCode::kInvalidArgument);
}

TEST(FileTest, FullDiskIsReportedByWriteOrCommit) {
  if (!FileExists("/dev/full")) GTEST_SKIP();
  const ScratchDir scratch;
  const Path link = scratch / "full";
  std::filesystem::create_symlink("/dev/full", link.string() + ".tmp");
  Result<FileWriter> writer = FileWriter::Create(link);
  ASSERT_TRUE(writer.ok());
  const Status status = writer->Write("abc");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
