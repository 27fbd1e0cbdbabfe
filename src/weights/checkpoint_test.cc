#include "weights/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/scratch_dir.h"
#include "weights/expert_source.h"
#include "weights/ngram_source.h"

namespace deepinfer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void WriteText(const Path& path, std::string_view text) {
  Result<FileWriter> file = FileWriter::Create(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Write(text).ok());
  ASSERT_TRUE(file->Commit().ok());
}

// Tensors filled with one byte.
void WriteTensors(const Path& path, const std::vector<TensorSpec>& specs, char fill = 100) {
  Result<SafetensorsWriter> writer = SafetensorsWriter::Create(path, specs);
  ASSERT_TRUE(writer.ok());
  for (const TensorSpec& spec : specs) {
    const std::string bytes(static_cast<size_t>(spec.num_bytes()), fill);
    ASSERT_TRUE(writer->Write(std::as_bytes(std::span(bytes))).ok());
  }
  ASSERT_TRUE(writer->Commit().ok());
}

TensorSpec Bytes(std::string name, int64_t size = 4) {
  return {.name = std::move(name), .dtype = DType::kU8, .shape = {size}};
}

std::string RefusalOf(const Path& dir) {
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir);
  return checkpoint.ok() ? "" : checkpoint.status().message();
}

TEST(CheckpointTest, SingleFileIsOpenedAndThePrefixIsDropped) {
  const ScratchDir dir;
  WriteTensors(dir / "model.safetensors", {Bytes("model.embed.weight"), Bytes("head.weight")});
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_NE(checkpoint->Find("embed.weight"), nullptr);
  EXPECT_NE(checkpoint->Find("head.weight"), nullptr);
  EXPECT_EQ(checkpoint->Find("model.embed.weight"), nullptr);
  EXPECT_FALSE(checkpoint->HasDraftHead());
}

TEST(CheckpointTest, ShardsAreOpenedAsTheIndexSays) {
  const Result<Checkpoint> checkpoint =
      Checkpoint::Open(Path(DEEPINFER_SOURCE_DIR) / "models/nano");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(checkpoint->files().size(), 2u);
  EXPECT_TRUE(checkpoint->HasDraftHead());
}

TEST(CheckpointTest, TensorsStayWhereTheyAreWhenTheCheckpointMoves) {
  const ScratchDir dir;
  WriteTensors(dir / "model.safetensors", {Bytes("a")});
  Result<Checkpoint> opened = Checkpoint::Open(dir.path());
  ASSERT_TRUE(opened.ok());
  const std::byte* data = opened->Find("a")->view.bytes.data();
  const Checkpoint moved = *std::move(opened);
  EXPECT_EQ(moved.Find("a")->view.bytes.data(), data);
  EXPECT_EQ(moved.Find("a")->file->path(), dir / "model.safetensors");
}

TEST(CheckpointTest, MissingDirectoriesAndFilesAreNamed) {
  EXPECT_THAT(RefusalOf("/no/such/dir"), HasSubstr("/no/such/dir"));
  EXPECT_THAT(RefusalOf(ScratchDir().path()), HasSubstr("model.safetensors.index.json"));
  EXPECT_NE(RefusalOf(Path(std::string(5000, 'a'))), "");
}

TEST(CheckpointTest, IndexAndShardsMustAgree) {
  const ScratchDir dir;
  const Path index = dir / "model.safetensors.index.json";
  WriteTensors(dir / "s1.safetensors", {Bytes("a"), Bytes("b")});
  WriteTensors(dir / "s2.safetensors", {Bytes("c")});

  WriteText(index, R"({"weight_map":{"a":"s1.safetensors","b":"s1.safetensors",)"
                   R"("c":"s2.safetensors"}})");
  EXPECT_EQ(RefusalOf(dir.path()), "");

  WriteText(index, R"({"weight_map":{"a":"s1.safetensors","b":"s1.safetensors",)"
                   R"("c":"s3.safetensors"}})");
  EXPECT_THAT(RefusalOf(dir.path()), HasSubstr("s3.safetensors"));

  WriteText(index, R"({"weight_map":{"a":"s1.safetensors","b":"s2.safetensors",)"
                   R"("c":"s2.safetensors"}})");
  EXPECT_THAT(RefusalOf(dir.path()),
              AllOf(HasSubstr("'b'"), HasSubstr("s1.safetensors"), HasSubstr("s2.safetensors")));

  WriteText(index, R"({"weight_map":{"a":"s1.safetensors","c":"s2.safetensors"}})");
  EXPECT_THAT(RefusalOf(dir.path()), AllOf(HasSubstr("'b'"), HasSubstr("nowhere")));

  WriteText(index, R"({"weight_map":{"a":"s1.safetensors","b":"s1.safetensors",)"
                   R"("c":"s2.safetensors","d":"s2.safetensors"}})");
  EXPECT_THAT(RefusalOf(dir.path()), AllOf(HasSubstr("'d'"), HasSubstr("nothing")));
}

TEST(CheckpointTest, MalformedIndexesAreRefused) {
  const ScratchDir dir;
  WriteTensors(dir / "s1.safetensors", {Bytes("a")});
  for (const char* text : {"", "[]", "{}", "{\"weight_map\":1}", R"({"weight_map":{"a":1}})",
                           R"({"weight_map":{"a":"../x/s1.safetensors"}})",
                           R"({"weight_map":{"a":""}})", R"({"weight_map":{"a":".."}})",
                           R"({"weight_map":{"a":"s1.safetensors","a":"s1.safetensors"}})"}) {
    WriteText(dir / "model.safetensors.index.json", text);
    EXPECT_NE(RefusalOf(dir.path()), "") << text;
  }
}

TEST(CheckpointTest, OneNameInTwoShardsIsRefused) {
  const ScratchDir dir;
  WriteTensors(dir / "s1.safetensors", {Bytes("model.a")});
  WriteTensors(dir / "s2.safetensors", {Bytes("a")});
  WriteText(dir / "model.safetensors.index.json",
            R"({"weight_map":{"model.a":"s1.safetensors","a":"s2.safetensors"}})");
  EXPECT_THAT(RefusalOf(dir.path()), AllOf(HasSubstr("'a'"), HasSubstr("s1"), HasSubstr("s2")));
}

TEST(CheckpointTest, CopiesOfEmbeddingAndHeadInDraftBlocksAreLeftAside) {
  const ScratchDir dir;
  WriteTensors(dir / "model.safetensors",
               {Bytes("mtp.0.embed.weight"), Bytes("mtp.12.head.weight"),
                Bytes("mtp.2.markov_head.embed.weight"), Bytes("mtp.0.x.head.weight")});
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(checkpoint->tensors().size(), 2u);
  EXPECT_NE(checkpoint->Find("mtp.2.markov_head.embed.weight"), nullptr);
}

TEST(CheckpointTest, ValidationNamesTheFirstDifference) {
  const ScratchDir dir;
  WriteTensors(dir / "model.safetensors", {Bytes("a"), Bytes("b", 8)});
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok());
  const auto refusal = [&](std::vector<TensorSpec> specs) {
    return checkpoint->Validate(specs).message();
  };
  EXPECT_TRUE(checkpoint->Validate(std::vector<TensorSpec>{Bytes("a"), Bytes("b", 8)}).ok());
  EXPECT_THAT(refusal({Bytes("a"), Bytes("b", 8), Bytes("c")}),
              AllOf(HasSubstr("'c'"), HasSubstr("nothing"), HasSubstr("U8 [4]")));
  EXPECT_THAT(refusal({Bytes("a")}), AllOf(HasSubstr("'b'"), HasSubstr("no such tensor")));
  EXPECT_THAT(refusal({Bytes("a"), Bytes("b", 9)}),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("'b'"), HasSubstr("U8 [8]"),
                    HasSubstr("U8 [9]")));
  EXPECT_THAT(refusal({Bytes("a"), {.name = "b", .dtype = DType::kI8, .shape = {8}}}),
              AllOf(HasSubstr("U8 [8]"), HasSubstr("I8 [8]")));
}

TEST(CheckpointTest, ScaleBytesOutsideTheirRangeAreFoundWhereverTheyAre) {
  std::vector<std::byte> scales(10000, std::byte{120});
  EXPECT_EQ(FirstBadScale(scales), std::nullopt);
  scales[0] = std::byte{41};
  scales[1] = std::byte{200};
  EXPECT_EQ(FirstBadScale(scales), std::nullopt);
  for (const int64_t at : {int64_t{0}, int64_t{4095}, int64_t{4096}, int64_t{9999}}) {
    for (const uint8_t bad : {0, 40, 201, 255}) {
      std::vector<std::byte> copy = scales;
      copy[static_cast<size_t>(at)] = std::byte{bad};
      EXPECT_EQ(FirstBadScale(copy), at);
    }
  }
  EXPECT_EQ(FirstBadScale({}), std::nullopt);
}

TEST(CheckpointTest, BadScalesOfLinearsFailValidationAndThoseOfTablesWait) {
  const ScratchDir dir;
  const std::vector<TensorSpec> specs = {
      {.name = "layers.0.attn.wkv.scale", .dtype = DType::kF8E8M0, .shape = {2, 2}},
      {.name = "layers.1.engram.embed.scale", .dtype = DType::kF8E8M0, .shape = {2, 2}}};
  WriteTensors(dir / "model.safetensors", {specs[1]}, 7);
  EXPECT_TRUE(Checkpoint::Open(dir.path())->Validate(std::span(specs).subspan(1)).ok());
  WriteTensors(dir / "model.safetensors", specs, 7);
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_TRUE(checkpoint->ValidateLayout(specs).ok());
  EXPECT_THAT(checkpoint->Validate(specs).message(),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("layers.0.attn.wkv.scale"),
                    HasSubstr("scale byte 7 at element 0"), HasSubstr("41 to 200")));
}

// One layer with two experts of k = 32, n = 32, and a table of three rows.
std::vector<TensorSpec> SmallSpecs() {
  std::vector<TensorSpec> specs;
  for (const char* expert : {"0", "1"}) {
    for (const char* matrix : {"w1", "w3", "w2"}) {
      const std::string name = std::string("layers.0.ffn.experts.") + expert + "." + matrix;
      specs.push_back({.name = name + ".weight", .dtype = DType::kI8, .shape = {32, 16}});
      specs.push_back({.name = name + ".scale", .dtype = DType::kF8E8M0, .shape = {32, 1}});
    }
  }
  specs.push_back(
      {.name = "layers.0.engram.embed.weight", .dtype = DType::kF8E4M3, .shape = {3, 32}});
  specs.push_back(
      {.name = "layers.0.engram.embed.scale", .dtype = DType::kF8E8M0, .shape = {3, 1}});
  return specs;
}

TEST(ExpertSourceTest, LeasesPointIntoTheFileAndBadScalesAreRefusedOnAcquisition) {
  const ScratchDir dir;
  const std::vector<TensorSpec> specs = SmallSpecs();
  Result<SafetensorsWriter> writer =
      SafetensorsWriter::Create(dir / "model.safetensors", std::span(specs));
  ASSERT_TRUE(writer.ok());
  for (const TensorSpec& spec : specs) {
    // A byte below 41 in expert 1's w2 only.
    const bool bad = spec.name == "layers.0.ffn.experts.1.w2.scale";
    const std::string bytes(static_cast<size_t>(spec.num_bytes()), bad ? 40 : 120);
    ASSERT_TRUE(writer->Write(std::as_bytes(std::span(bytes))).ok());
  }
  ASSERT_TRUE(writer->Commit().ok());
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok());
  const std::unique_ptr<ExpertSource> source =
      MapExperts(*checkpoint, {.num_layers = 1, .num_experts = 2});
  std::vector<ExpertLease> leases;
  const int32_t first[] = {0};
  ASSERT_TRUE(source->Acquire(0, first, leases).ok());
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(leases[0].w3().codes),
            checkpoint->Find("layers.0.ffn.experts.0.w3.weight")->view.bytes.data());
  const int32_t second[] = {1};
  EXPECT_THAT(source->Acquire(0, second, leases).message(),
              HasSubstr("layers.0.ffn.experts.1.w2.scale"));
}

TEST(NgramSourceTest, RowsAreCopiedInTheOrderAskedForAndTheirScalesChecked) {
  const ScratchDir dir;
  const std::vector<TensorSpec> specs = {
      {.name = "layers.0.engram.embed.weight", .dtype = DType::kF8E4M3, .shape = {3, 32}},
      {.name = "layers.0.engram.embed.scale", .dtype = DType::kF8E8M0, .shape = {3, 1}}};
  Result<SafetensorsWriter> writer =
      SafetensorsWriter::Create(dir / "model.safetensors", std::span(specs));
  ASSERT_TRUE(writer.ok());
  std::vector<uint8_t> codes(96);
  std::iota(codes.begin(), codes.end(), uint8_t{0});
  const uint8_t scales[] = {100, 255, 101};
  ASSERT_TRUE(writer->Write(std::span<const uint8_t>(codes)).ok());
  ASSERT_TRUE(writer->Write(std::span<const uint8_t>(scales)).ok());
  ASSERT_TRUE(writer->Commit().ok());
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok());
  const int layers[] = {0};
  const std::unique_ptr<NgramSource> source = MapNgramTables(*checkpoint, layers);
  uint8_t row_codes[64];
  uint8_t row_scales[2];
  const int64_t rows[] = {2, 0};
  source->Prefetch(0, rows);
  ASSERT_TRUE(source->Fetch(0, rows, row_codes, row_scales).ok());
  EXPECT_EQ(row_codes[0], 64);
  EXPECT_EQ(row_codes[32], 0);
  EXPECT_EQ(row_scales[0], 101);
  EXPECT_EQ(row_scales[1], 100);
  const int64_t bad[] = {1};
  EXPECT_THAT(source->Fetch(0, bad, row_codes, row_scales).message(),
              AllOf(HasSubstr("layers.0.engram.embed.scale"), HasSubstr("255 at element 1")));
}

}  // namespace
}  // namespace deepinfer
