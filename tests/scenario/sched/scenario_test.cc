// Runs every scenario of this folder.  DEEPINFER_REWRITE_SCENARIOS=1 writes what came out into the
// files instead: read the difference before it is committed.
//
// Commands (all numbers whole; times in ms):
//   machine [seqs=4] [tokens=100] [blocks=100] [block=10] [budget=0] [aging=10000] [chunk=32768]
//           [set_aside=1000 blocks]     begins anew.  A step takes 10 ms for each phase that it
//           has,
//                                       1 ms a prompt row, 2 ms a decode row.
//   add ID prompt=N output=N [stops_at=N] [priority=N] [deadline=N from now] [chunk=N]
//          [cached=N [from=N, replayed]]   a request; of its prompt that much is cached
//   cancel ID          in any state, also between plan and advance
//   pause ID, unpause ID   its reader cannot take more, or can again
//   outside N          others hold so many blocks
//   wait N             time passes
//   plan               the next step, one decision a line; what it takes and leaves
//   drop               the planned rows are not computed: the step was stopped
//   advance            the planned rows are computed
//   step [N]           plan and advance, one line each
//   run                steps until nothing is left; prints only how requests end
//   status             one line for each request
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "tests/scenario/scenario_file.h"
#include "tests/scenario/sched/simulated_engine.h"

namespace deepinfer {
namespace {

constexpr StepCosts kCosts = {
    .prefill = {.fixed_us = 10'000, .token_us = 1'000, .context_us = 1e-9},
    .decode = {.fixed_us = 10'000, .token_us = 2'000, .context_us = 1e-9},
};
constexpr int kMostSteps = 10'000;

class SchedulerScenario {
 public:
  std::string Run(const ScenarioCommand& command) {
    out_.clear();
    if (command.name == "machine") {
      MakeMachine(command);
    } else if (engine_ == nullptr) {
      Say("found no machine before this command");
    } else if (!Do(command)) {
      Say("unknown command: {}", command.line);
    }
    if (const std::string unknown = command.Unknown(); !unknown.empty()) {
      Say("not understood: {}", unknown);
    }
    if (engine_ != nullptr) {
      for (const std::string& violation : engine_->violations) Say("VIOLATION {}", violation);
      engine_->violations.clear();
    }
    return out_;
  }

 private:
  template <typename... Args>
  void Say(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...) + '\n';
  }

  void MakeMachine(const ScenarioCommand& command) {
    // One microsecond more than the budget: contexts cost next to nothing, which is not nothing.
    const int64_t budget_ms = command.Number("budget", 0);
    const SchedulerLimits limits{.max_num_seqs = command.Number("seqs", 4),
                                 .max_num_batched_tokens = command.Number("tokens", 100),
                                 .max_chunk = command.Number("chunk", 32'768),
                                 .step_time_budget_us = budget_ms > 0 ? budget_ms * 1000 + 1 : 0,
                                 .aging_us = command.Number("aging", 10'000) * 1000,
                                 .block_tokens = command.Number("block", 10),
                                 .num_blocks = command.Number("blocks", 100),
                                 .block_bytes = 1};
    engine_ = std::make_unique<SimulatedEngine>(limits, kCosts, kCosts);
    engine_->set_aside_blocks = command.Number("set_aside", 1000);
  }

  bool Do(const ScenarioCommand& command) {
    if (command.name == "add") {
      Add(command);
    } else if (command.name == "cancel") {
      engine_->Cancel(command.First());
      SayEnds();
    } else if (command.name == "pause" || command.name == "unpause") {
      engine_->SetPaused(command.First(), command.name == "pause");
    } else if (command.name == "outside") {
      TakeOutside(command.First());
    } else if (command.name == "wait") {
      engine_->now_us += command.First() * 1000;
    } else if (command.name == "plan") {
      SayPlan(engine_->Plan());
      SayEnds();
    } else if (command.name == "drop") {
      engine_->plan.Clear();
    } else if (command.name == "advance") {
      engine_->Advance();
      SayEnds();
    } else if (command.name == "step") {
      Step(command);
    } else if (command.name == "run") {
      RunToTheEnd();
    } else if (command.name == "status") {
      SayStatus();
    } else {
      return false;
    }
    return true;
  }

  void Add(const ScenarioCommand& command) {
    RequestFacts facts{.id = command.First(),
                       .prompt_len = command.Number("prompt", 1),
                       .max_tokens = command.Number("output", 1),
                       .num_cached_tokens = command.Number("cached", 0),
                       .max_chunk = command.Number("chunk", 0),
                       .priority = static_cast<int>(command.Number("priority", 0))};
    facts.computed_len = command.Number("from", facts.num_cached_tokens);
    facts.may_recompute = !command.Has("replayed");
    const int64_t due_ms = command.Number("deadline", -1);
    if (due_ms >= 0) facts.deadline_us = engine_->now_us + due_ms * 1000;
    const Status status = engine_->Add(facts, command.Number("stops_at", 0));
    if (!status.ok()) Say("{}: {}", facts.id, status.message());
  }

  void TakeOutside(int64_t blocks) {
    const int64_t most = engine_->free_blocks() + engine_->outside_blocks;
    if (blocks > most) Say("found {} blocks to take, expected at most {}", blocks, most);
    engine_->outside_blocks = std::min(blocks, most);
  }

  std::string RowsText(const StepRows& row) const {
    if (row.phase == Phase::kDecode) return fmt::format("{}:decode", row.id);
    const int64_t begin = engine_->requests.at(row.id).computed_len;
    return fmt::format("{}:prompt[{},{})", row.id, begin, begin + row.num_tokens);
  }

  // The decisions, each a phrase.
  std::vector<std::string> Decisions(const StepPlan& plan) const {
    std::vector<std::string> phrases;
    for (const Refusal& refusal : plan.refusals) {
      phrases.push_back(fmt::format("refuse {}", refusal.id));
    }
    for (const Preemption& preemption : plan.preemptions) {
      const bool whole = preemption.kind == PreemptKind::kWhole;
      phrases.push_back(fmt::format("preempt {} ({})", preemption.id, whole ? "whole" : "tokens"));
    }
    for (const RequestId id : plan.admissions) phrases.push_back(fmt::format("admit {}", id));
    std::vector<std::string> rows;
    for (const StepRows& row : plan.rows) rows.push_back(RowsText(row));
    phrases.push_back(rows.empty() ? "no rows" : fmt::format("{}", fmt::join(rows, " ")));
    return phrases;
  }

  void SayPlan(const StepPlan& plan) {
    for (const std::string& phrase : Decisions(plan)) Say("{}", phrase);
    Say("takes {:.0f} ms, {} blocks free", plan.predicted_us / 1000, engine_->free_blocks());
  }

  // What ended since it was last said.
  void SayEnds() {
    for (const auto& [id, end] : engine_->ends) {
      if (!std::exchange(said_[id], true)) Say("{} {}", id, SimulatedEndName(end));
    }
  }

  void Step(const ScenarioCommand& command) {
    const int64_t count = command.First(1);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at_ms = engine_->now_us / 1000;
      const std::vector<std::string> decisions = Decisions(engine_->Plan());
      Say("{:>5} ms: {}", at_ms, fmt::join(decisions, "; "));
      engine_->Advance();
      SayEnds();
    }
  }

  void RunToTheEnd() {
    for (int step = 0; !engine_->requests.empty(); ++step) {
      if (step == kMostSteps) return Say("not finished after {} steps", step);
      engine_->Plan();
      engine_->Advance();
      for (const auto& [id, end] : engine_->ends) {
        if (std::exchange(said_[id], true)) continue;
        Say("{:>5} ms: {} {}", engine_->now_us / 1000, id, SimulatedEndName(end));
      }
    }
  }

  void SayStatus() {
    for (const auto& [id, request] : engine_->requests) {
      const char* state = request.running               ? "runs"
                          : request.num_preemptions > 0 ? "waits again"
                                                        : "waits";
      Say("{} {}: {} of {} rows, {} output, {} blocks", id, state, request.computed_len,
          request.known_len, request.output_len(), request.held_blocks);
    }
  }

  std::unique_ptr<SimulatedEngine> engine_;
  std::map<RequestId, bool> said_;
  std::string out_;
};

std::filesystem::path Folder() {
  return std::filesystem::path(DEEPINFER_SOURCE_DIR) / "tests/scenario/sched";
}

std::vector<std::string> ScenarioNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class SchedulerScenarioTest : public testing::TestWithParam<std::string> {};

TEST_P(SchedulerScenarioTest, GivesThePlansThatTheFileSays) {
  const std::filesystem::path path = Folder() / (GetParam() + ".txt");
  const std::string text = ReadText(path);
  Result<Scenario> scenario = ParseScenario(text);
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  EXPECT_FALSE(scenario->blocks.empty());
  SchedulerScenario run;
  for (ScenarioBlock& block : scenario->blocks) {
    block.expected.clear();
    for (const ScenarioCommand& command : block.commands) block.expected += run.Run(command);
  }
  const std::string found = scenario->Text();
  EXPECT_THAT(found, testing::Not(testing::HasSubstr("VIOLATION")));
  if (std::getenv("DEEPINFER_REWRITE_SCENARIOS") != nullptr) {
    std::ofstream(path) << found;
  } else {
    EXPECT_TRUE(found == text) << path.filename().string() << ":\n" << LineDiff(text, found);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, SchedulerScenarioTest, testing::ValuesIn(ScenarioNames()),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace deepinfer
