// Sequences that are set aside and resumed at any point give the bits of never having been.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "engine/run_stepper.h"
#include "engine/same_bits.h"
#include "model/prefix_hit.h"

namespace deepinfer {
namespace {

bool SameBytes(const auto& a, const auto& b) {
  return std::ranges::equal(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

class PreemptionTest : public testing::Test {
 protected:
  static constexpr int kSubjects = 4;

  static void SetUpTestSuite() {
    model_ = LoadOrDie({.dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano", .max_sequences = 6});
  }
  static void TearDownTestSuite() {
    undisturbed_.clear();  // its states hold blocks of the model
    model_.reset();
  }

  // Of every kind: all prefill modes, greedy and sampled, penalised, with log-probabilities and
  // stop strings, whole and in chunks.
  static GenerationRequest Request(int i) {
    GenerationRequest request{
        .prompt = TextRows(
            RandomTokens(170 + 60 * i, model_->config().vocab_size, static_cast<uint64_t>(40 + i))),
        .max_tokens = 12,
        .ignore_eos = true,
        .prefill = {.mode = static_cast<PrefillMode>(i % 4)},
        .chunk = i % 2 == 0 ? 64 : 0,
        .keep_state = true};
    request.sampling.seed = 7 + static_cast<uint64_t>(i);
    request.sampling.temperature = i == 1 ? 0 : 0.8;
    request.sampling.num_logprobs = i == 2 ? 3 : -1;
    if (i == 3) {
      request.sampling.repetition_penalty = 1.4;
      request.sampling.presence_penalty = 0.5;
      request.stop = {"never to be found", "qq"};
    }
    return request;
  }

  static std::vector<std::unique_ptr<Subject>> Subjects() {
    std::vector<std::unique_ptr<Subject>> subjects;
    for (int i = 0; i < kSubjects; ++i) {
      subjects.push_back(std::make_unique<Subject>(*model_, Request(i)));
    }
    return subjects;
  }

  static void Finish(Subject& subject) {
    Stepper stepper(*model_);
    Subject* const one[] = {&subject};
    while (!subject.run.finished()) ASSERT_TRUE(stepper.Step(one).ok());
    subject.run.Deliver();
  }

  // Every subject alone and undisturbed.
  static const std::vector<std::unique_ptr<Subject>>& Undisturbed() {
    if (undisturbed_.empty()) {
      undisturbed_ = Subjects();
      for (const auto& subject : undisturbed_) Finish(*subject);
    }
    return undisturbed_;
  }
  static void ExpectSame(const Subject& found, const Subject& expected) {
    ASSERT_TRUE(found.listener.result.ok()) << found.listener.result.status().message();
    const GenerationResult& a = *found.listener.result;
    const GenerationResult& b = *expected.listener.result;
    EXPECT_TRUE(SameBytes(found.logits, expected.logits)) << "logits";
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(found.listener.text, expected.listener.text);
    EXPECT_EQ(a.finish_reason, b.finish_reason);
    EXPECT_TRUE(SameBytes(a.logprobs, b.logprobs)) << "log-probabilities";
    EXPECT_EQ(a.top.size(), b.top.size());
    ASSERT_TRUE(a.state && b.state);
    EXPECT_TRUE(a.state->Serialize(model_->identity()) == b.state->Serialize(model_->identity()))
        << "state";
  }

  static std::unique_ptr<ModelInstance> model_;
  static std::vector<std::unique_ptr<Subject>> undisturbed_;
};

std::unique_ptr<ModelInstance> PreemptionTest::model_;
std::vector<std::unique_ptr<Subject>> PreemptionTest::undisturbed_;

// Steps and preemptions at random: each subject may be set aside before every step, stay away for a
// while, come back and go again at once.
void RunDisturbed(ModelInstance& model, std::vector<std::unique_ptr<Subject>>& subjects,
                  uint64_t seed) {
  Stepper stepper(model);
  for (uint32_t step = 0;; ++step) {
    std::vector<Subject*> runnable;
    bool done = true;
    for (size_t i = 0; i < subjects.size(); ++i) {
      SequenceRun& run = subjects[i]->run;
      if (run.finished()) continue;
      done = false;
      const PhiloxBlock random = Philox(seed, {step, static_cast<uint32_t>(i), 0, 0});
      for (uint32_t turn = 0; turn < 2; ++turn) {
        const uint32_t dice = random[turn];
        if (run.is_set_aside() && dice % 3 != 0) {
          ASSERT_TRUE(run.Resume().ok());
        }
        if (!run.is_set_aside() && dice % 5 == 0) {
          const SetAsideKind kind = dice & 64 ? SetAsideKind::kWhole : SetAsideKind::kTokens;
          ASSERT_TRUE(run.SetAside(kind).ok());
        }
      }
      if (!run.is_set_aside()) runnable.push_back(subjects[i].get());
      ASSERT_TRUE(model.pool().CheckIntegrity());
    }
    if (done) return;
    if (runnable.empty()) continue;
    ASSERT_TRUE(stepper.Step(runnable).ok());
  }
}

TEST_F(PreemptionTest, RandomPreemptionsBesideNeighboursChangeNoBit) {
  const auto& expected = Undisturbed();
  int64_t preemptions = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    std::vector<std::unique_ptr<Subject>> subjects = Subjects();
    RunDisturbed(*model_, subjects, seed);
    for (size_t i = 0; i < subjects.size(); ++i) {
      subjects[i]->run.Deliver();
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", request " << i);
      ExpectSame(*subjects[i], *expected[i]);
      preemptions += subjects[i]->listener.result->num_preemptions;
    }
  }
  EXPECT_GT(preemptions, 30);
  EXPECT_EQ(model_->set_aside().used(), 0);
}

// After each of its steps, in the middle of the prompt and of the answer, twice in a row.
TEST_F(PreemptionTest, EveryPointOfARunCanBeInterrupted) {
  const auto& expected = Undisturbed();
  for (const SetAsideKind kind : {SetAsideKind::kWhole, SetAsideKind::kTokens}) {
    for (int i = 0; i < kSubjects; ++i) {
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", request " << i);
      for (int64_t at = 0;; at += kind == SetAsideKind::kWhole ? 3 : 5) {
        Subject subject(*model_, Request(i));
        Subject* const one[] = {&subject};
        Stepper stepper(*model_);
        for (int64_t step = 0; step < at && !subject.run.finished(); ++step) {
          ASSERT_TRUE(stepper.Step(one).ok());
        }
        if (subject.run.finished()) break;
        for (int again = 0; again < 2; ++again) {
          ASSERT_TRUE(subject.run.SetAside(kind).ok());
          ASSERT_TRUE(subject.run.Resume().ok());
        }
        Finish(subject);
        ExpectSame(subject, *expected[static_cast<size_t>(i)]);
      }
    }
  }
}

TEST_F(PreemptionTest, ProgressOfThePromptIsToldOnce) {
  Subject subject(*model_, Request(0));
  Subject* const one[] = {&subject};
  Stepper stepper(*model_);
  ASSERT_TRUE(stepper.Step(one).ok());
  ASSERT_TRUE(subject.run.SetAside(SetAsideKind::kTokens).ok());
  ASSERT_TRUE(subject.run.Resume().ok());
  Finish(subject);
  EXPECT_EQ(subject.listener.prefill, (std::vector<int64_t>{64, 128, 170}));
}

TEST_F(PreemptionTest, ASequenceSetAsideHoldsNoBlock) {
  Undisturbed();  // its states hold blocks
  const int64_t others = model_->pool().num_in_use();
  Subject subject(*model_, Request(3));
  Subject* const one[] = {&subject};
  Stepper stepper(*model_);
  ASSERT_TRUE(stepper.Step(one).ok());
  EXPECT_EQ(model_->pool().num_in_use(), others + 3);
  EXPECT_EQ(subject.run.BlocksToFree(), 3);
  ASSERT_TRUE(subject.run.SetAside(SetAsideKind::kWhole).ok());
  EXPECT_EQ(model_->pool().num_in_use(), others);
  EXPECT_EQ(subject.run.BlocksToResume(), 3);
  EXPECT_GT(model_->set_aside().used(), 3 * model_->layout().block_bytes());
  ASSERT_TRUE(subject.run.Resume().ok());
  EXPECT_EQ(model_->set_aside().used(), 0);
  ASSERT_TRUE(subject.run.SetAside(SetAsideKind::kTokens).ok());
  EXPECT_EQ(model_->pool().num_in_use(), others);
  EXPECT_EQ(subject.run.BlocksToResume(), 0);
  EXPECT_TRUE(model_->pool().CheckIntegrity());
}

TEST_F(PreemptionTest, ARequestCancelledWhileSetAsideKeepsItsTokens) {
  for (const SetAsideKind kind : {SetAsideKind::kWhole, SetAsideKind::kTokens}) {
    Subject subject(*model_, Request(1));
    Subject* const one[] = {&subject};
    Stepper stepper(*model_);
    for (int step = 0; step < 5; ++step) ASSERT_TRUE(stepper.Step(one).ok());
    ASSERT_TRUE(subject.run.SetAside(kind).ok());
    subject.run.Cancel();
    subject.run.Deliver();
    ASSERT_TRUE(subject.listener.result.ok());
    EXPECT_EQ(subject.listener.result->finish_reason, FinishReason::kCancelled);
    EXPECT_EQ(subject.listener.result->tokens.size(), 5u);
    EXPECT_FALSE(subject.listener.result->state.has_value());
  }
  EXPECT_EQ(model_->set_aside().used(), 0);
}

// Its bits depend on where the replay began: tokens alone cannot bring them back, bytes can.
TEST_F(PreemptionTest, ASequenceBehindABoundedReplayIsSetAsideWholeOrNotAtAll) {
  constexpr int64_t kHit = 384;
  const std::vector<BatchRow> prompt = TextRows(RandomTokens(600, model_->config().vocab_size, 77));
  const auto request = [&] {
    SequenceState cached = model_->NewSequence();
    BeginPrompt(cached, PrefillOptions::Full(), kHit);
    const SequenceSlice slice{.state = &cached, .num_rows = kHit};
    EXPECT_TRUE(model_->transformer()
                    .Forward(model_->context(),
                             {.rows = std::span(prompt).first(kHit), .slices = {&slice, 1}}, {})
                    .ok());
    const std::vector<BlockRef> blocks = cached.ShareBlocks(kHit);
    GenerationRequest behind_hit{.prompt = prompt, .max_tokens = 6, .keep_state = true};
    behind_hit.sampling.seed = 3;
    behind_hit.state = model_->NewSequence(
        {.len = kHit,
         .blocks = blocks,
         .replay = PlanReplay(model_->config(), ReplayRecord::Kind::kBounded, kHit)},
        prompt, behind_hit.prefill);
    return behind_hit;
  };
  Subject undisturbed(*model_, request());
  Finish(undisturbed);

  Subject subject(*model_, request());
  EXPECT_FALSE(subject.run.CanRecompute());
  const Status refused = subject.run.SetAside(SetAsideKind::kTokens);
  EXPECT_EQ(refused.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refused.message(),
            "found a sequence that began behind a bounded replay, expected one whose tokens alone "
            "give the same bits again; set its whole state aside");
  EXPECT_FALSE(subject.run.is_set_aside());
  for (int step = 0; !subject.run.finished(); ++step) {
    ASSERT_TRUE(subject.run.SetAside(SetAsideKind::kWhole).ok());
    ASSERT_TRUE(subject.run.Resume().ok());
    Stepper stepper(*model_);
    Subject* const one[] = {&subject};
    ASSERT_TRUE(stepper.Step(one).ok());
  }
  subject.run.Deliver();
  ExpectSame(subject, undisturbed);
}

// A hit whose windows came from a snapshot has the bits of a cold run, so its tokens are enough.
TEST_F(PreemptionTest, ASequenceBehindAnExactHitIsComputedAgainFromItsTokens) {
  constexpr int64_t kHit = 384;
  const std::vector<BatchRow> prompt = TextRows(RandomTokens(600, model_->config().vocab_size, 78));
  SequenceState cached = model_->NewSequence();
  BeginPrompt(cached, PrefillOptions::Full(), kHit);
  const SequenceSlice slice{.state = &cached, .num_rows = kHit};
  ASSERT_TRUE(model_->transformer()
                  .Forward(model_->context(),
                           {.rows = std::span(prompt).first(kHit), .slices = {&slice, 1}}, {})
                  .ok());
  const std::vector<BlockRef> blocks = cached.ShareBlocks(kHit);
  const WindowSnapshot windows = cached.CaptureWindows();
  const auto request = [&] {
    GenerationRequest behind_hit{.prompt = prompt, .max_tokens = 6, .keep_state = true};
    behind_hit.sampling.seed = 3;
    behind_hit.state = model_->NewSequence(
        {.len = kHit,
         .blocks = blocks,
         .windows = &windows,
         .replay = PlanReplay(model_->config(), ReplayRecord::Kind::kSnapshot, kHit)},
        prompt, behind_hit.prefill);
    return behind_hit;
  };
  Subject undisturbed(*model_, request());
  Finish(undisturbed);
  Subject subject(*model_, request());
  Stepper stepper(*model_);
  Subject* const one[] = {&subject};
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(stepper.Step(one).ok());
  ASSERT_TRUE(subject.run.SetAside(SetAsideKind::kTokens).ok());
  ASSERT_TRUE(subject.run.Resume().ok());
  Finish(subject);
  ExpectSame(subject, undisturbed);
}

// KV bytes of a block of nano: 105 a token, and its entries in tables.
constexpr int64_t kNanoBlock = 105 * kBlockTokens + 32;

TEST(PreemptionLimitsTest, WhatDoesNotFitIsRefusedAndTheSequenceStaysAsItIs) {
  const std::unique_ptr<ModelInstance> model =
      LoadOrDie({.dir = Path(DEEPINFER_SOURCE_DIR) / "models/nano",
                 .kv_cache_memory = 3 * kNanoBlock,
                 .max_model_len = 256,
                 .max_sequences = 2});
  ASSERT_NE(model, nullptr);
  GenerationRequest request{.prompt = TextRows(RandomTokens(150, model->config().vocab_size, 5)),
                            .max_tokens = 4};
  Subject subject(*model, std::move(request));
  Stepper stepper(*model);
  Subject* const one[] = {&subject};
  ASSERT_TRUE(stepper.Step(one).ok());
  ASSERT_TRUE(subject.run.SetAside(SetAsideKind::kWhole).ok());

  // Another takes the blocks meanwhile.
  SequenceState other = model->NewSequence();
  ASSERT_TRUE(other.Reserve(256).ok());
  EXPECT_EQ(subject.run.Resume().code(), ErrorCode::kResourceExhausted);
  EXPECT_TRUE(subject.run.is_set_aside());
  other = model->NewSequence();
  ASSERT_TRUE(subject.run.Resume().ok());

  const Result<SetAsideState> filler = [&]() -> Result<SetAsideState> {
    SequenceState filled = model->NewSequence();
    return model->set_aside().Keep(filled, model->identity());
  }();
  ASSERT_TRUE(filler.ok());
  const Status refused = subject.run.SetAside(SetAsideKind::kWhole);
  EXPECT_EQ(refused.code(), ErrorCode::kResourceExhausted);
  EXPECT_FALSE(subject.run.is_set_aside());
  while (!subject.run.finished()) ASSERT_TRUE(stepper.Step(one).ok());
}

}  // namespace
}  // namespace deepinfer
