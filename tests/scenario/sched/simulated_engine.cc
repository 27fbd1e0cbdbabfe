#include "tests/scenario/sched/simulated_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace deepinfer {
namespace {

double TimeOf(const PhaseCost& cost, const PhaseLoad& load) {
  if (load.tokens == 0) return 0;
  return cost.fixed_us + cost.token_us * static_cast<double>(load.tokens) +
         cost.context_us * load.context;
}

}  // namespace

std::string_view SimulatedEndName(SimulatedEnd end) {
  switch (end) {
    case SimulatedEnd::kFinished:
      return "finished";
    case SimulatedEnd::kCancelled:
      return "cancelled";
    case SimulatedEnd::kOverdue:
      return "refused, overdue";
    case SimulatedEnd::kNoBlocks:
      return "refused, no blocks";
  }
  return "?";
}

SimulatedEngine::SimulatedEngine(const SchedulerLimits& limits, const StepCosts& true_costs,
                                 const StepCosts& assumed)
    : scheduler(limits, assumed), truth(true_costs) {}

Status SimulatedEngine::Add(RequestFacts facts, int64_t stops_at) {
  facts.arrival_us = now_us;
  RETURN_IF_ERROR(scheduler.Add(facts));
  const int64_t cached = facts.num_cached_tokens / scheduler.limits().block_tokens;
  requests[facts.id] = {.facts = facts,
                        .stops_at = stops_at > 0 ? stops_at : facts.max_tokens,
                        .computed_len = facts.computed_len,
                        .known_len = facts.prompt_len,
                        .held_blocks = cached,
                        .shared_blocks = cached,
                        .last_served_us = now_us};
  return Status::Ok();
}

void SimulatedEngine::Cancel(RequestId id) {
  scheduler.Remove(id);
  if (requests.contains(id)) End(id, SimulatedEnd::kCancelled);
}

void SimulatedEngine::SetPaused(RequestId id, bool paused) {
  scheduler.SetPaused(id, paused);
  if (requests.contains(id)) requests[id].paused = paused;
}

const StepPlan& SimulatedEngine::Plan() {
  scheduler.Plan(now_us,
                 {.free_blocks = std::max<int64_t>(0, free_blocks()),
                  .set_aside_bytes = set_aside_left() * scheduler.limits().block_bytes},
                 plan);
  for (const Refusal& refusal : plan.refusals) {
    Expect(requests.contains(refusal.id), fmt::format("refuses unknown {}", refusal.id));
    const bool overdue = refusal.reason == RefuseReason::kDeadline;
    End(refusal.id, overdue ? SimulatedEnd::kOverdue : SimulatedEnd::kNoBlocks);
  }
  for (const Preemption& preemption : plan.preemptions) CarryOutPreemption(preemption);
  for (const RequestId id : plan.admissions) {
    Expect(requests.contains(id) && !requests[id].running, fmt::format("admits {} wrongly", id));
    SimulatedRequest& request = requests[id];
    request.running = true;
    // What was set aside whole comes back at once.
    request.held_blocks += std::exchange(request.set_aside_blocks, 0);
    request.last_served_us = std::max(request.last_served_us, request.facts.arrival_us);
  }
  CheckRows();
  CheckTime();
  Expect(scheduler.CheckIntegrity(), "lost its integrity");
  return plan;
}

void SimulatedEngine::CarryOutPreemption(const Preemption& preemption) {
  SimulatedRequest& request = requests[preemption.id];
  Expect(request.running, fmt::format("preempts {}, which does not run", preemption.id));
  request.running = false;
  ++request.num_preemptions;
  if (preemption.kind == PreemptKind::kWhole) {
    request.set_aside_blocks = BlocksFor(request.computed_len);
  } else {
    Expect(request.facts.may_recompute, fmt::format("lets {} be recomputed", preemption.id));
    request.computed_len = 0;
  }
  request.lingering_blocks += std::exchange(request.shared_blocks, 0);
  request.held_blocks = 0;
  Expect(set_aside_left() >= 0, "sets more aside than there is room for");
}

void SimulatedEngine::CheckRows() {
  int64_t rows = 0;
  int64_t new_blocks = 0;
  bool prompts_began = false;
  std::set<RequestId> seen;
  for (const StepRows& row : plan.rows) {
    Expect(requests.contains(row.id) && requests[row.id].running && seen.insert(row.id).second,
           fmt::format("plans rows of {} wrongly", row.id));
    const SimulatedRequest& request = requests[row.id];
    Expect(!request.paused, fmt::format("plans rows of {}, which is paused", row.id));
    const int64_t end = request.computed_len + row.num_tokens;
    Expect(row.num_tokens >= 1 && end <= request.known_len, "plans rows that do not exist");
    const bool prompt = row.phase == Phase::kPrefill;
    Expect(prompt || row.num_tokens == 1, "decodes several rows");
    Expect(prompt || !prompts_began, "plans a decode row behind a prompt");
    prompts_began |= prompt;
    const int64_t own = request.facts.max_chunk;
    Expect(row.num_tokens <= scheduler.limits().max_chunk && (own == 0 || row.num_tokens <= own),
           "plans too long a chunk");
    rows += row.num_tokens;
    new_blocks += std::max<int64_t>(0, BlocksFor(end) - request.held_blocks);
  }
  Expect(rows <= scheduler.limits().max_num_batched_tokens, "plans more rows than allowed");
  Expect(rows == 0 || new_blocks <= free_blocks(), "plans more blocks than are free");
  if (plan.rows.empty()) return;  // stuck: a refusal has just made room, for the next step
  for (const auto& [id, request] : requests) {
    const bool decodes = request.running && !request.paused && request.output_len() > 0 &&
                         request.computed_len + 1 == request.known_len;
    Expect(!decodes || seen.contains(id) || new_blocks == free_blocks(),
           fmt::format("leaves out the decode row of {}", id));
  }
}

void SimulatedEngine::CheckTime() {
  const int64_t budget = scheduler.limits().step_time_budget_us;
  const int64_t prompt_rows = plan.load[Phase::kPrefill].tokens;
  if (budget == 0 || prompt_rows == 0 || prompt_rows <= 64) return;  // the least chunk
  Expect(plan.predicted_us <= static_cast<double>(budget) * (1 + 1e-9), "plans a step too long");
}

void SimulatedEngine::Advance() {
  double us = TimeOf(truth.prefill, plan.load[Phase::kPrefill]) +
              TimeOf(truth.decode, plan.load[Phase::kDecode]);
  if (noise) us = noise(us);
  elapsed_us = std::llround(us);
  now_us += elapsed_us;
  if (elapsed_us > 0) scheduler.ObserveStep(plan.load, us);
  for (const StepRows& row : plan.rows) {
    scheduler.Advance(row.id, row.num_tokens, now_us);
    if (!requests.contains(row.id)) continue;  // cancelled meanwhile
    SimulatedRequest& request = requests[row.id];
    request.computed_len += row.num_tokens;
    request.held_blocks = std::max(request.held_blocks, BlocksFor(request.computed_len));
    request.last_served_us = now_us;
    if (request.computed_len == request.known_len) ++request.known_len;
    if (request.output_len() < request.stops_at) continue;
    scheduler.Remove(row.id);
    End(row.id, SimulatedEnd::kFinished);
  }
  plan.Clear();
}

int64_t SimulatedEngine::free_blocks() const {
  int64_t held = outside_blocks;
  for (const auto& [id, request] : requests) {
    held += request.held_blocks + request.lingering_blocks;
  }
  return scheduler.limits().num_blocks - held;
}

int64_t SimulatedEngine::set_aside_left() const {
  int64_t left = set_aside_blocks;
  for (const auto& [id, request] : requests) left -= request.set_aside_blocks;
  return left;
}

int64_t SimulatedEngine::BlocksFor(int64_t tokens) const {
  const int64_t block = scheduler.limits().block_tokens;
  return (tokens + block - 1) / block;
}

void SimulatedEngine::Expect(bool holds, std::string what) {
  if (!holds) violations.push_back(fmt::format("at {} us: the plan {}", now_us, what));
}

void SimulatedEngine::End(RequestId id, SimulatedEnd end) {
  Expect(ends.emplace(id, end).second, fmt::format("ends {} twice", id));
  requests.erase(id);
}

}  // namespace deepinfer
