#include "io/file.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

Path Scratch(const char* name) { return Path(testing::TempDir()) / name; }

TEST(FileTest, WrittenFileIsVisibleOnlyAfterCommit) {
  const Path path = Scratch("commit.bin");
  std::filesystem::remove(path);
  Result<FileWriter> writer = FileWriter::Create(path);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Write("abc").ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(*ReadFile(path), "abc");
}

TEST(FileTest, AbandonedWriterLeavesNothingBehind) {
  const Path path = Scratch("abandoned.bin");
  { ASSERT_TRUE(FileWriter::Create(path)->Write("abc").ok()); }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".tmp"));
}

TEST(FileTest, SkippedBytesReadAsZeros) {
  const Path path = Scratch("sparse.bin");
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
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  const Path link = Scratch("full");
  std::filesystem::remove(link.string() + ".tmp");
  std::filesystem::create_symlink("/dev/full", link.string() + ".tmp");
  Result<FileWriter> writer = FileWriter::Create(link);
  ASSERT_TRUE(writer.ok());
  const Status status = writer->Write("abc");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace deepinfer
