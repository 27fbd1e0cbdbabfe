#include "synth/synthesize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>

#include "model/manifest.h"
#include "model/ngram_layout.h"
#include "synth/presets.h"
#include "synth/tensor_values.h"
#include "synth/tokenizer_files.h"
#include "tensor/bf16.h"
#include "tensor/fp8.h"
#include "tests/support/scratch_dir.h"
#include "tokenizer/tokenizer.h"
#include "weights/checkpoint.h"

namespace deepinfer {
namespace {

using testing::HasSubstr;

ModelConfig Tiny(const PresetChanges& changes = {}) { return *ConfigOf(Preset::kTiny, changes); }

uint64_t HashOf(std::span<const std::byte> bytes) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325;
  for (const std::byte b : bytes) hash = (hash ^ static_cast<uint8_t>(b)) * 0x100000001B3;
  return hash;
}

TEST(SynthesizeTest, WhatItWritesIsAValidCheckpoint) {
  const ScratchDir scratch;
  const Path dir = scratch / "made";
  const Result<SynthReport> report = Synthesize(Tiny(), {.dir = dir});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->files, 1);
  const Result<ModelConfig> config = ModelConfig::Load(dir);
  ASSERT_TRUE(config.ok());
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir);
  ASSERT_TRUE(checkpoint.ok());
  const Status valid = checkpoint->Validate(SpecsOf(*config));
  EXPECT_TRUE(valid.ok()) << valid.message();
  const Result<std::string> ngrams = ReadFile(dir / "engram.json");
  ASSERT_TRUE(ngrams.ok());
  const Result<NgramLayout> layout = NgramLayout::Parse(*config, *ngrams);
  EXPECT_TRUE(layout.ok()) << layout.status().message();
}

TEST(SynthesizeTest, BytesAreThoseOfTheSeedOnEveryMachine) {
  const ScratchDir scratch;
  const Path dir = scratch / "made";
  ASSERT_TRUE(Synthesize(Tiny(), {.dir = dir, .seed = 7}).ok());
  const Result<MappedFile> file = MappedFile::Open(dir / "model.safetensors");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(HashOf(file->bytes()), 3406138206246381679u);
  const Path other = scratch / "other";
  ASSERT_TRUE(Synthesize(Tiny(), {.dir = other, .seed = 8}).ok());
  EXPECT_NE(HashOf(MappedFile::Open(other / "model.safetensors")->bytes()), HashOf(file->bytes()));
}

TEST(SynthesizeTest, ShardsHoldTheSameTensorsAsOneFile) {
  const ScratchDir scratch;
  const Path dir = scratch / "made";
  const Path single = scratch / "single";
  const Result<SynthReport> report = Synthesize(Tiny(), {.dir = dir, .max_shard_bytes = 1 << 20});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->files, 3);
  ASSERT_TRUE(Synthesize(Tiny(), {.dir = single}).ok());
  const Result<Checkpoint> a = Checkpoint::Open(dir);
  const Result<Checkpoint> b = Checkpoint::Open(single);
  ASSERT_TRUE(a.ok()) << a.status().message();
  ASSERT_TRUE(b.ok());
  ASSERT_EQ(a->tensors().size(), b->tensors().size());
  for (const auto& [name, tensor] : a->tensors()) {
    EXPECT_EQ(HashOf(tensor.view.bytes), HashOf(b->Find(name)->view.bytes)) << name;
  }
}

TEST(SynthesizeTest, LargeTablesAreHolesWithGoodScales) {
  const ScratchDir scratch;
  const Path dir = scratch / "made";
  const ModelConfig config = Tiny();
  const Result<SynthReport> report = Synthesize(config, {.dir = dir, .max_dense_table_bytes = 0});
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->sparse_bytes, 0);
  const Result<Checkpoint> checkpoint = Checkpoint::Open(dir);
  ASSERT_TRUE(checkpoint.ok());
  for (const auto& [name, tensor] : checkpoint->tensors()) {
    if (!IsNgramTable(name)) continue;
    const bool zeros = std::all_of(tensor.view.bytes.begin(), tensor.view.bytes.end(),
                                   [](std::byte b) { return b == std::byte{0}; });
    EXPECT_EQ(zeros, tensor.view.dtype == DType::kF8E4M3);
    EXPECT_TRUE(zeros || !FirstBadScale(tensor.view.bytes));
  }
}

TEST(SynthesizeTest, DirectoryInUseIsRefusedAndLeftAlone) {
  const ScratchDir scratch;
  const Path dir = scratch / "made";
  std::filesystem::create_directories(dir);
  Result<FileWriter> file = FileWriter::Create(dir / "mine.txt");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_THAT(Synthesize(Tiny(), {.dir = dir}).status().message(), HasSubstr("files in it"));
  EXPECT_TRUE(std::filesystem::exists(dir / "mine.txt"));
  EXPECT_THAT(Synthesize(Tiny(), {.dir = dir / "mine.txt"}).status().message(),
              HasSubstr("found a file"));
}

TEST(SynthesizeTest, AStoppedRunLeavesNothing) {
  const ScratchDir scratch;
  const Path dir = scratch / "made";
  const Result<SynthReport> report =
      Synthesize(Tiny(), {.dir = dir, .should_stop = [] { return true; }});
  EXPECT_EQ(report.status().code(), ErrorCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(dir));
}

TEST(SynthesizeTest, AFailedWriteIsReportedAndLeavesNothing) {
  const ScratchDir scratch;
  const Path dir = scratch / "made";
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  // The first shard of half a megabyte succeeds, a later one is too large.
  const Result<SynthReport> report = Synthesize(Tiny(), {.dir = dir, .max_shard_bytes = 3 << 20});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), ErrorCode::kIoError);
  EXPECT_THAT(report.status().message(), HasSubstr("safetensors: cannot write"));
  EXPECT_FALSE(std::filesystem::exists(dir));
}

TEST(SynthVocabularyTest, EveryIdHasATokenAtEverySize) {
  for (const int size : {SynthVocabulary::kMinSize, 512, 4096, 129280}) {
    const SynthVocabulary vocabulary(size);
    const Result<Tokenizer> tokenizer = Tokenizer::Parse(vocabulary.TokenizerJson());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    EXPECT_EQ(tokenizer->vocab_size(), size);
    EXPECT_EQ(tokenizer->special().image, vocabulary.image_token());
    EXPECT_EQ(tokenizer->special().system, vocabulary.system_token());
    const std::string text = "h\xC3\xA9llo 12 \xE4\xBD\xA0\n\t<think>!";
    EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode(text)), text);
  }
}

TEST(TensorValuesTest, PartsFitTogether) {
  for (const DType dtype :
       {DType::kF32, DType::kBf16, DType::kF8E4M3, DType::kF8E8M0, DType::kI8}) {
    const TensorSpec spec{.name = "layers.0.x", .dtype = dtype, .shape = {64, 64}};
    const TensorValues values(3, spec);
    std::vector<std::byte> whole(static_cast<size_t>(spec.num_bytes()));
    values.Fill(0, whole);
    std::vector<std::byte> parts(whole.size());
    const size_t cut = TensorValues::kGranule * 7;
    values.Fill(0, std::span(parts).first(cut));
    values.Fill(cut, std::span(parts).subspan(cut));
    EXPECT_EQ(parts, whole);
  }
}

// Root mean square of an FP8 matrix of `inputs` columns as dequantised.
double Fp8Rms(int64_t inputs) {
  const int64_t rows = 256;
  const TensorSpec codes{.name = "a.weight", .dtype = DType::kF8E4M3, .shape = {rows, inputs}};
  const TensorSpec scales{
      .name = "a.scale", .dtype = DType::kF8E8M0, .shape = {rows / 32, inputs / 32}};
  std::vector<std::byte> c(static_cast<size_t>(codes.num_bytes()));
  std::vector<std::byte> s(static_cast<size_t>(scales.num_bytes()));
  TensorValues(1, codes).Fill(0, c);
  TensorValues(1, scales).Fill(0, s);
  double sum = 0;
  for (int64_t o = 0; o < rows; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      const auto scale = static_cast<int>(s[static_cast<size_t>(o / 32 * (inputs / 32) + i / 32)]);
      const float code = DecodeE4M3(static_cast<uint8_t>(c[static_cast<size_t>(o * inputs + i)]));
      sum += std::pow(std::ldexp(code, scale - 127), 2);
    }
  }
  return std::sqrt(sum / static_cast<double>(rows * inputs));
}

TEST(TensorValuesTest, MatricesNeitherGrowNorShrinkTheirInputs) {
  for (const int64_t inputs : {64, 128, 1280, 5120}) {
    EXPECT_NEAR(Fp8Rms(inputs) * std::sqrt(static_cast<double>(inputs)), 1, 0.15) << inputs;
  }
}

TEST(TensorValuesTest, NormWeightsLieAroundOne) {
  const TensorSpec spec{
      .name = "layers.0.attn_norm.weight", .dtype = DType::kBf16, .shape = {5120}};
  std::vector<uint16_t> values(5120);
  TensorValues(1, spec).Fill(0, std::as_writable_bytes(std::span(values)));
  for (const uint16_t value : values) EXPECT_NEAR(Bf16ToFloat(value), 1, 0.21);
}

}  // namespace
}  // namespace deepinfer
