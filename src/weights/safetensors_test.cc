#include "weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/scratch_dir.h"
#include "weights/safetensors_writer.h"

namespace deepinfer {
namespace {

using testing::HasSubstr;

std::string Length(uint64_t bytes) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &bytes, 8);
  return text;
}

// What the reader says about a file of these bytes; empty when it accepts them.
std::string RefusalOf(const std::string& bytes) {
  const ScratchDir dir;
  const Path path = dir / "raw.safetensors";
  Result<FileWriter> file = FileWriter::Create(path);
  EXPECT_TRUE(file.ok());
  EXPECT_TRUE(file->Write(bytes).ok());
  EXPECT_TRUE(file->Commit().ok());
  const Result<SafetensorsFile> opened = SafetensorsFile::Open(path);
  return opened.ok() ? "" : opened.status().message();
}

std::string RefusalOf(const std::string& header, const std::string& data) {
  return RefusalOf(Length(header.size()) + header + data);
}

TEST(SafetensorsTest, ReaderGivesBackWhatTheWriterWrote) {
  const ScratchDir dir;
  const Path path = dir / "round_trip.safetensors";
  const std::vector<TensorSpec> specs = {{.name = "a\"b\\c", .dtype = DType::kF32, .shape = {2, 3}},
                                         {.name = "scalar", .dtype = DType::kI64, .shape = {}},
                                         {.name = "none", .dtype = DType::kBf16, .shape = {0, 7}},
                                         {.name = "hole", .dtype = DType::kU8, .shape = {5}}};
  Result<SafetensorsWriter> writer = SafetensorsWriter::Create(path, specs, {{"made by", "test"}});
  ASSERT_TRUE(writer.ok());
  const float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t scalar[] = {-7};
  ASSERT_TRUE(writer->Write(std::span<const float>(values)).ok());
  ASSERT_TRUE(writer->Write(std::span<const int64_t>(scalar)).ok());
  ASSERT_TRUE(writer->Skip(5).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(writer->Commit().ok());

  const Result<SafetensorsFile> file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors().size(), 4u);
  const TensorView* a = file->Find("a\"b\\c");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(a->bytes.data(), values, sizeof values), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a->bytes.data()) % 8, 0u);
  EXPECT_EQ(file->Find("scalar")->num_elements(), 1);
  EXPECT_EQ(file->Find("none")->bytes.size(), 0u);
  EXPECT_EQ(file->Find("hole")->bytes[4], std::byte{0});
  EXPECT_EQ(file->Find("other"), nullptr);
  EXPECT_THAT(file->header(), HasSubstr("made by"));
}

TEST(SafetensorsTest, GoldenFilesOfEveryTypeAreRead) {
  const Path golden = Path(DEEPINFER_SOURCE_DIR) / "tests/golden/tiny/golden_release.safetensors";
  const Result<SafetensorsFile> file = SafetensorsFile::Open(golden);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->Find("p21.logits")->shape[1], 512);
}

struct Malformed {
  const char* header;
  size_t data_bytes;
  std::vector<const char*> says;
};

TEST(SafetensorsTest, MalformedHeadersAreRefusedWithFileTensorFoundAndExpected) {
  const Malformed cases[] = {
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3, {"'a'", "3", "truncated"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 5, {"1 bytes after"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5, {"'a'", "gap of 1"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
       7,
       {"'b'", "3..7", "overlap with 'a'"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       8,
       {"'a'", "twice"}},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}})", 4, {"'a'", "4 bytes", "16"}},
      {R"({"a":{"dtype":"F8_E5M2","shape":[4],"data_offsets":[0,4]}})", 4, {"'a'", "F8_E5M2"}},
      {R"({"a":{"dtype":4,"shape":[4],"data_offsets":[0,4]}})", 4, {"'a'", "dtype"}},
      {R"({"a":{"dtype":"U8","shape":4,"data_offsets":[0,4]}})", 4, {"'a'", "'shape'"}},
      {R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})", 4, {"'a'", "shape"}},
      {R"({"a":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}})", 4, {"'a'", "shape"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4, {"'a'", "[4, 0]"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,8]}})", 4, {"'a'", "[0, 4, 8]"}},
      {R"({"a":{"dtype":"U8","shape":[4]}})", 4, {"'a'", "2 members"}},
      {R"({"a":{"dtype":"U8","shape":[4],"shape":[4]}})", 4, {"'a'", "data_offsets"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1}})", 4, {"'a'", "4 members"}},
      {R"({"a":{"dtype":"U8","shape":[9007199254740993],"data_offsets":[0,9007199254740993]}})",
       4,
       {"'a'", "2^53"}},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,1e30]}})", 4, {"'a'", "2^53"}},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
       0,
       {"'a'", "2^53"}},
      {R"({"a":[1]})", 0, {"'a'", "object"}},
      {R"({"__metadata__":[1]})", 0, {"__metadata__", "object"}},
      {R"([1])", 0, {"object"}},
      {R"({"a":)", 0, {"JSON"}},
      {"{\"\xff\":1}", 0, {"JSON", "UTF-8"}},
      {"", 0, {"JSON"}},
  };
  for (const Malformed& malformed : cases) {
    const std::string message = RefusalOf(malformed.header, std::string(malformed.data_bytes, 'x'));
    EXPECT_THAT(message, HasSubstr("raw.safetensors")) << malformed.header;
    for (const char* word : malformed.says) EXPECT_THAT(message, HasSubstr(word));
  }
}

TEST(SafetensorsTest, AbsurdLengthsAndOtherFilesAreRefused) {
  EXPECT_THAT(RefusalOf(""), HasSubstr("0 bytes"));
  EXPECT_THAT(RefusalOf("1234567"), HasSubstr("7 bytes"));
  EXPECT_THAT(RefusalOf(Length(uint64_t{1} << 60) + "{}"), HasSubstr("header length"));
  EXPECT_THAT(RefusalOf(Length(~uint64_t{0}) + "{}"), HasSubstr("header length"));
  EXPECT_THAT(RefusalOf(Length(3) + "{}"), HasSubstr("header length"));
  EXPECT_THAT(RefusalOf("PK\3\4 a zip archive, not tensors"), HasSubstr("header length"));
  EXPECT_THAT(SafetensorsFile::Open("/no/such.safetensors").status().message(),
              HasSubstr("/no/such.safetensors"));
  EXPECT_EQ(RefusalOf(Length(2) + "{}"), "");
}

TEST(SafetensorsTest, EmptyTensorsMayShareAPlace) {
  EXPECT_EQ(RefusalOf(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                      R"("c":{"dtype":"U8","shape":[0,9],"data_offsets":[2,2]}})",
                      "xx"),
            "");
}

}  // namespace
}  // namespace deepinfer
