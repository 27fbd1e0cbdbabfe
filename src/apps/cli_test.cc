// The command line as its users see it: the built program is run, and its output and exit status
// are looked at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/model_dir.h"
#include "io/file.h"
#include "tests/support/run_deepinfer.h"

namespace deepinfer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CommandLineTest, HelpAndVersionGoToStdoutWithStatusZero) {
  const Outcome help = Deepinfer("--help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("inspect"), HasSubstr("--model"), HasSubstr("Examples")));
  EXPECT_THAT(help.err, IsEmpty());
  const Outcome version = Deepinfer("--version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, AllOf(HasSubstr("deepinfer 0."), HasSubstr("numerics v41-release"),
                                 HasSubstr("scalar")));
}

TEST(CommandLineTest, EveryCommandHasHelpWithExamples) {
  for (const char* command :
       {"generate", "chat", "logits", "inspect", "synth", "verify checkpoint"}) {
    const Outcome run = Deepinfer(std::string(command) + " --help");
    EXPECT_EQ(run.exit_code, 0) << command;
    EXPECT_THAT(run.out, HasSubstr("Examples:")) << command;
  }
}

TEST(CommandLineTest, WrongUsageIsStatusTwoWithOneSentence) {
  for (const char* arguments :
       {"", "nonsense", "--nonsense", "inspect --nonsense", "inspect extra", "verify",
        "verify nonsense", "--threads x inspect", "inspect --threads -1",
        "inspect --memory 3bananas", "inspect --numerics bf16", "inspect --log-level 1",
        "inspect --max-model-len 9999999", "synth", "synth --preset tiny",
        "synth --preset huge --out /tmp/x", "synth --preset tiny --vocab 5 --out /tmp/never",
        "inspect --config /no/such.toml", "inspect inspect"}) {
    const Outcome run = Deepinfer(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments << ": " << run.err;
    EXPECT_THAT(run.out, IsEmpty()) << arguments;
    EXPECT_TRUE(IsOneSentence(run.err)) << arguments << ": " << run.err;
  }
}

TEST(CommandLineTest, FailureIsStatusOneWithOneSentence) {
  for (const char* arguments : {"inspect --model /no/such/dir", "--model /no/such inspect",
                                "verify checkpoint --model /tmp", "inspect --model /dev/null",
                                "inspect --model /etc/passwd"}) {
    const Outcome run = Deepinfer(arguments);
    EXPECT_EQ(run.exit_code, 1) << arguments << ": " << run.err;
    EXPECT_TRUE(IsOneSentence(run.err)) << arguments << ": " << run.err;
  }
  const Outcome odd = Deepinfer("inspect --model " + std::string(5000, 'a'));
  EXPECT_EQ(odd.exit_code, 1);
}

TEST(CommandLineTest, FullDiskAndClosedPipeAreFailures) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  for (const char* command : {"inspect", "inspect --json", "--help", "--version"}) {
    const Outcome run = Deepinfer(std::string(command) + " >/dev/full");
    EXPECT_EQ(run.exit_code, 1) << command;
    EXPECT_THAT(run.err, HasSubstr("No space left on device")) << command;
  }
  const Outcome closed = Deepinfer("inspect >&-");
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_THAT(closed.err, HasSubstr("cannot write the results"));
}

TEST(CommandLineTest, FlagsWinOverTheEnvironmentAndThatOverTheFile) {
  const ScratchDir scratch;
  const Path config = scratch / "config.toml";
  WriteText(config, "threads = 5\nmax-model-len = 300\n[inspect]\njson = true\n");
  const std::string file = " --config " + Quoted(config);
  EXPECT_THAT(Deepinfer("inspect" + file).out, HasSubstr("\"threads\": 5"));
  EXPECT_THAT(Deepinfer("inspect" + file, "DEEPINFER_THREADS=6").out, HasSubstr("\"threads\": 6"));
  EXPECT_THAT(Deepinfer("inspect --threads 7" + file, "DEEPINFER_THREADS=6").out,
              AllOf(HasSubstr("\"threads\": 7"), HasSubstr("\"max_model_len\": 300")));
  WriteText(config, "treads = 5\n");
  EXPECT_EQ(Deepinfer("inspect" + file).exit_code, 2);
  WriteText(config, "[inspect\nthis is no TOML = = \n");
  EXPECT_EQ(Deepinfer("inspect" + file).exit_code, 2);
}

TEST(CommandLineTest, BadValuesInTheEnvironmentAreRefused) {
  const Outcome run = Deepinfer("inspect", "DEEPINFER_THREADS=many");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("many"));
  const Outcome isa = Deepinfer("inspect", "DEEPINFER_ISA=mmx");
  EXPECT_NE(isa.exit_code, 0);
  EXPECT_THAT(isa.err, HasSubstr("mmx"));
}

TEST(CommandLineTest, ShippedModelIsFoundFromAnywhere) {
  const Outcome run = Deepinfer("inspect", "cd / &&");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("deepseek_v41"));
  const Outcome given =
      Deepinfer("inspect", "DEEPINFER_MODEL='" DEEPINFER_SOURCE_DIR "/tests/golden/tiny'");
  EXPECT_THAT(given.out, HasSubstr("hidden 128"));
}

TEST(CommandLineTest, SynthesisedCheckpointIsVerifiedAndDamageIsFound) {
  const ScratchDir scratch;
  const Path dir = scratch / "synth";
  const Outcome synth = Deepinfer("synth --preset tiny --seed 3 --out " + Quoted(dir));
  ASSERT_EQ(synth.exit_code, 0) << synth.err;
  EXPECT_THAT(synth.out, HasSubstr("1,236 tensors"));
  EXPECT_EQ(Deepinfer("verify checkpoint --model " + Quoted(dir)).exit_code, 0);

  // The last bytes belong to a bf16 tensor: exponents of ones make infinities and NaNs.
  std::string bytes = *ReadFile(dir / "model.safetensors");
  bytes.replace(bytes.size() - 2, 2, "\x80\x7f");
  WriteText(dir / "model.safetensors", bytes);
  const Outcome damaged = Deepinfer("verify checkpoint --json --model " + Quoted(dir));
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.out, AllOf(HasSubstr("\"ok\": false"), HasSubstr("inf at element")));
  EXPECT_TRUE(IsOneSentence(damaged.err)) << damaged.err;

  std::filesystem::resize_file(dir / "model.safetensors", 3'000'000);
  const Outcome truncated = Deepinfer("verify checkpoint --model " + Quoted(dir));
  EXPECT_EQ(truncated.exit_code, 1);
  EXPECT_THAT(truncated.err, HasSubstr("truncated"));
}

TEST(CommandLineTest, FullDiskDuringSynthesisLeavesNothing) {
  const ScratchDir scratch;
  const Path dir = scratch / "full";
  // ulimit -f counts blocks of 512 or 1,024 bytes; either way 1,000 of them are too few.
  const Outcome run =
      Deepinfer("synth --preset tiny --out " + Quoted(dir), "trap '' XFSZ; ulimit -f 1000;");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("File too large"));
  EXPECT_FALSE(std::filesystem::exists(dir));
}

TEST(ModelDirTest, PlacesAreListedWhenNoneHasAModel) {
  EXPECT_EQ(*FindModelDir("/given/as/it/is"), Path("/given/as/it/is"));
  EXPECT_GE(DefaultModelPlaces().size(), 4u);
  EXPECT_TRUE(FindModelDir("").ok());
}

TEST(VerifyDeterminismTest, SaysPerAxisWhatWasComparedAndThatItIsEqual) {
  const Path tiny = Path(DEEPINFER_SOURCE_DIR) / "tests/golden/tiny";
  const Outcome run = Deepinfer("verify determinism --tokens 60 --quick --model " + Quoted(tiny));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("chunks                   1 equal"));
  EXPECT_THAT(run.out, HasSubstr("60 tokens whole and in chunks of 7"));
  EXPECT_THAT(run.out, HasSubstr("hits, compact            4 equal"));

  const Outcome few =
      Deepinfer("verify determinism --tokens 9 --quick --json --model " + Quoted(tiny));
  EXPECT_EQ(few.exit_code, 0) << few.err;
  EXPECT_THAT(few.out, HasSubstr("\"scope\": \"not run: 9 tokens are too few for a hit\""));
  EXPECT_THAT(few.out, HasSubstr("\"first_difference\": null"));

  const Outcome many = Deepinfer("verify determinism --tokens 5000 --model " + Quoted(tiny));
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_THAT(many.err, HasSubstr("--tokens: found 5000, expected 1 to 236"));
  EXPECT_TRUE(IsOneSentence(many.err)) << many.err;
}

}  // namespace
}  // namespace deepinfer
