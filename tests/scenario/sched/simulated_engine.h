// Stands in for the engine under a scheduler: carries plans out with its own simple books of
// blocks, tokens and time, and holds each plan against them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sched/scheduler.h"

namespace deepinfer {

enum class SimulatedEnd { kFinished, kCancelled, kOverdue, kNoBlocks };
std::string_view SimulatedEndName(SimulatedEnd end);

struct SimulatedRequest {
  RequestFacts facts;
  int64_t stops_at = 0;  // output tokens after which it ends
  bool running = false;
  bool paused = false;
  int64_t computed_len = 0;
  int64_t known_len = 0;
  int64_t held_blocks = 0;    // of the pool
  int64_t shared_blocks = 0;  // of them those that another request holds too
  int64_t lingering_blocks =
      0;  // once shared, given up, and still held by the other until this ends
  int64_t set_aside_blocks = 0;
  int64_t last_served_us = 0;
  int64_t num_preemptions = 0;

  int64_t output_len() const { return known_len - facts.prompt_len; }
};

class SimulatedEngine {
 public:
  // How long a step takes, given what the true costs say.
  using Noise = std::function<double(double true_us)>;

  SimulatedEngine(const SchedulerLimits& limits, const StepCosts& truth, const StepCosts& assumed);

  // stops_at: 0 for facts.max_tokens.
  Status Add(RequestFacts facts, int64_t stops_at = 0);
  void Cancel(RequestId id);
  void SetPaused(RequestId id, bool paused);
  // Plans a step, checks it, and carries out all of it but its rows.
  const StepPlan& Plan();
  // The rows of the last plan, and the time that they take.
  void Advance();

  int64_t free_blocks() const;
  int64_t set_aside_left() const;

  Scheduler scheduler;
  StepCosts truth;
  Noise noise;
  StepPlan plan;
  int64_t now_us = 0;
  int64_t elapsed_us = 0;                          // of the last step
  int64_t outside_blocks = 0;                      // held by somebody else
  int64_t set_aside_blocks = 1'000'000;            // room for states set aside whole
  std::map<RequestId, SimulatedRequest> requests;  // that have not ended
  std::map<RequestId, SimulatedEnd> ends;
  std::vector<std::string> violations;  // of what a plan must keep

 private:
  int64_t BlocksFor(int64_t tokens) const;
  void Expect(bool holds, std::string what);
  void End(RequestId id, SimulatedEnd end);
  void CarryOutPreemption(const Preemption& preemption);
  void CheckRows();
  void CheckTime();
};

}  // namespace deepinfer
