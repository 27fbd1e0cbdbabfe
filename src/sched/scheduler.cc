#include "sched/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace deepinfer {
namespace {

// Where decode rows alone use up a step's time, this many prompt rows run anyway, in one step of
// kPatience + 1: a prompt goes on, and answers lose little.
constexpr int64_t kLeastChunk = 64;
constexpr int64_t kPatience = 4;

}  // namespace

Scheduler::Scheduler(const SchedulerLimits& limits, const StepCosts& assumed)
    : limits_(limits), costs_(assumed) {
  CHECK_GT(limits.max_num_seqs, 0);
  CHECK_GT(limits.max_chunk, 0);
  CHECK_GT(limits.block_tokens, 0);
  CHECK_GT(limits.aging_us, 0);
  // A row for each sequence that decodes: none may starve.
  limits_.max_num_batched_tokens = std::max(limits.max_num_batched_tokens, limits.max_num_seqs);
}

// ---- what the caller says ----

Status Scheduler::Add(const RequestFacts& facts) {
  CHECK(sequences_.empty() || facts.id > sequences_.back().facts.id);
  CHECK_LT(std::max(facts.computed_len, facts.num_cached_tokens), facts.prompt_len);
  CHECK_GT(facts.max_tokens, 0);
  // The last token is never fed back.
  const int64_t most = BlocksFor(facts.prompt_len + facts.max_tokens - 1);
  if (most > limits_.num_blocks) {
    return ResourceExhausted(fmt::format(
        "prompt and answer: found {} and up to {} tokens, expected at most the {} KV blocks of {} "
        "tokens",
        facts.prompt_len, facts.max_tokens, limits_.num_blocks, limits_.block_tokens));
  }
  // A cached block that is not full is copied before it is written, so it is not counted as held.
  const int64_t cached_blocks = facts.num_cached_tokens / limits_.block_tokens;
  sequences_.push_back({.facts = facts,
                        .computed_len = facts.computed_len,
                        .known_len = facts.prompt_len,
                        .held_blocks = cached_blocks,
                        .shared_blocks = cached_blocks,
                        .served_us = facts.arrival_us});
  for (auto* list : {&running_, &waiting_, &prompts_, &victims_}) {
    list->reserve(sequences_.capacity());
  }
  return Status::Ok();
}

void Scheduler::Remove(RequestId id) {
  const ScheduledSequence* sequence = Find(id);
  if (sequence != nullptr) sequences_.erase(sequences_.begin() + (sequence - sequences_.data()));
}

void Scheduler::Advance(RequestId id, int64_t num_tokens, int64_t now_us) {
  ScheduledSequence* sequence = Find(id);
  if (sequence == nullptr) return;
  CHECK(sequence->running);
  CHECK_LE(num_tokens, sequence->rows_left());
  sequence->computed_len += num_tokens;
  sequence->held_blocks = std::max(sequence->held_blocks, BlocksFor(sequence->computed_len));
  sequence->served_us = now_us;
  if (sequence->rows_left() == 0) ++sequence->known_len;
}

void Scheduler::SetPaused(RequestId id, bool paused) {
  ScheduledSequence* sequence = Find(id);
  if (sequence != nullptr) sequence->paused = paused;
}

void Scheduler::NoteStateLost(RequestId id) {
  ScheduledSequence* sequence = Find(id);
  if (sequence == nullptr) return;
  CHECK(!sequence->running && sequence->facts.may_recompute);
  sequence->computed_len = 0;
}

// ---- planning ----

void Scheduler::Plan(int64_t now_us, const StepBudget& budget, StepPlan& plan) {
  CHECK_GE(now_us, now_us_);
  now_us_ = now_us;
  plan.Clear();
  RefuseOverdue(plan);
  ListSequences(budget);
  // What a preemption freed is for those that grow; others wait for the next step.
  if (PreemptForGrowth(plan)) Admit(plan);
  PlanDecodeRows(plan);
  PlanPromptRows(plan);
  if (IsStuck(plan)) RefuseOneThatBlocks(plan);
  plan.predicted_us = costs_.PredictUs(plan.load);
}

void Scheduler::RefuseOverdue(StepPlan& plan) {
  std::erase_if(sequences_, [&](const ScheduledSequence& sequence) {
    const bool overdue =
        !sequence.running && !sequence.has_output() && sequence.facts.deadline_us <= now_us_;
    if (overdue) {
      plan.refusals.push_back({.id = sequence.facts.id, .reason = RefuseReason::kDeadline});
    }
    return overdue;
  });
}

void Scheduler::ListSequences(const StepBudget& budget) {
  running_.clear();
  waiting_.clear();
  room_ = {.unreserved_blocks = budget.free_blocks,
           .free_blocks = budget.free_blocks,
           .set_aside_bytes = budget.set_aside_bytes};
  for (ScheduledSequence& sequence : sequences_) {
    (sequence.running ? running_ : waiting_).push_back(&sequence);
    if (sequence.running) room_.unreserved_blocks -= MissingBlocks(sequence);
  }
  const BetterStanding better{.now_us = now_us_};
  std::sort(running_.begin(), running_.end(),
            [&](const auto* a, const auto* b) { return better(*a, *b); });
  const MoreUrgent more_urgent{.now_us = now_us_, .aging_us = limits_.aging_us};
  std::sort(waiting_.begin(), waiting_.end(),
            [&](const auto* a, const auto* b) { return more_urgent(*a, *b); });
}

// False when it preempted, or would have had to.
bool Scheduler::PreemptForGrowth(StepPlan& plan) {
  if (room_.unreserved_blocks >= 0) return true;
  for (size_t i = running_.size(); i-- > 1 && room_.unreserved_blocks < 0;) {
    if (KindOf(*running_[i], room_)) Preempt(running_[i], plan);
  }
  return false;
}

void Scheduler::Admit(StepPlan& plan) {
  bool closed = false;  // what is free is kept for one that waited long enough
  for (ScheduledSequence* sequence : waiting_) {
    if (sequence->paused) continue;
    if (!TryAdmit(*sequence, closed, plan) && IsAged(*sequence)) closed = true;
  }
}

bool Scheduler::TryAdmit(ScheduledSequence& sequence, bool from_victims_only, StepPlan& plan) {
  Room room = room_;
  int64_t places = limits_.max_num_seqs - std::ssize(running_);
  if (from_victims_only) {
    room.unreserved_blocks = 0;
    places = 0;
  }
  if (!ChooseVictims(sequence, room, places)) return false;
  for (ScheduledSequence* victim : victims_) Preempt(victim, plan);
  room_.unreserved_blocks -= MissingBlocks(sequence);
  sequence.running = true;
  if (IsAged(sequence)) sequence.protected_until_us = now_us_ + limits_.aging_us;
  running_.push_back(&sequence);
  plan.admissions.push_back(sequence.facts.id);
  return true;
}

// Fills victims_ with those that must be preempted before the sequence fits; false when it cannot.
bool Scheduler::ChooseVictims(const ScheduledSequence& sequence, Room room, int64_t places) {
  victims_.clear();
  const int64_t missing = MissingBlocks(sequence);
  const auto fits = [&] {
    // Each can then grow by a block, 128 tokens, before anything is preempted; one that is alone
    // needs no such margin.
    const int64_t others = std::ssize(running_) - std::ssize(victims_);
    const int64_t margin = others > 0 ? others + 1 : 0;
    return places > 0 && room.unreserved_blocks >= missing + margin;
  };
  for (size_t i = running_.size(); !fits() && i-- > 0;) {
    ScheduledSequence& victim = *running_[i];
    const bool lower =
        !victim.Protected(now_us_) && victim.facts.priority < sequence.facts.priority;
    // A reader may wait for another answer before it goes on with this one.
    if (!lower && !victim.paused) continue;
    const std::optional<PreemptKind> kind = KindOf(victim, room);
    if (!kind) continue;
    TakeBack(victim, *kind, room);
    ++places;
    victims_.push_back(&victim);
  }
  return fits();
}

std::optional<PreemptKind> Scheduler::KindOf(const ScheduledSequence& sequence,
                                             const Room& room) const {
  const int64_t bytes =
      limits_.state_bytes + limits_.block_bytes * BlocksFor(sequence.computed_len);
  if (bytes <= room.set_aside_bytes) return PreemptKind::kWhole;
  if (sequence.facts.may_recompute) return PreemptKind::kTokens;
  return std::nullopt;
}

// What preempting a running sequence gives and takes.
void Scheduler::TakeBack(const ScheduledSequence& sequence, PreemptKind kind, Room& room) const {
  const int64_t freed = sequence.held_blocks - sequence.shared_blocks;
  room.free_blocks += freed;
  room.unreserved_blocks += freed + MissingBlocks(sequence);
  if (kind == PreemptKind::kTokens) return;
  room.set_aside_bytes -=
      limits_.state_bytes + limits_.block_bytes * BlocksFor(sequence.computed_len);
}

void Scheduler::Preempt(ScheduledSequence* victim, StepPlan& plan) {
  const PreemptKind kind = *KindOf(*victim, room_);
  TakeBack(*victim, kind, room_);
  std::erase(running_, victim);
  victim->running = false;
  victim->held_blocks = 0;
  victim->shared_blocks = 0;
  if (kind == PreemptKind::kTokens) victim->computed_len = 0;
  plan.preemptions.push_back({.id = victim->facts.id, .kind = kind});
}

void Scheduler::PlanDecodeRows(StepPlan& plan) {
  prompts_.clear();
  for (ScheduledSequence* sequence : running_) {
    if (sequence->paused) continue;
    if (sequence->phase() == Phase::kPrefill) {
      prompts_.push_back(sequence);
      continue;
    }
    CHECK_LT(sequence->known_len, sequence->facts.prompt_len + sequence->facts.max_tokens);
    if (ChunkOf(*sequence, plan, 1) == 1) PlanRows(*sequence, 1, plan);
  }
}

void Scheduler::PlanPromptRows(StepPlan& plan) {
  const MoreUrgent more_urgent{.now_us = now_us_, .aging_us = limits_.aging_us};
  std::sort(prompts_.begin(), prompts_.end(),
            [&](const auto* a, const auto* b) { return more_urgent(*a, *b); });
  const size_t num_decode_rows = plan.rows.size();
  const auto budget_us = static_cast<double>(limits_.step_time_budget_us);
  bool least_chunk_due = num_decode_rows == 0 || steps_without_prompt_rows_ >= kPatience;
  for (const ScheduledSequence* sequence : prompts_) {
    int64_t chunk = ChunkOf(*sequence, plan, limits_.max_chunk);
    if (budget_us > 0 && chunk > 0) {
      int64_t in_time =
          costs_.MostPrefillTokens(plan.load, sequence->computed_len, chunk, budget_us);
      if (least_chunk_due) in_time = std::max(in_time, kLeastChunk);
      if (in_time == 0) break;
      chunk = std::min(chunk, in_time);
      least_chunk_due = false;
    }
    if (chunk > 0) PlanRows(*sequence, chunk, plan);
  }
  const bool left_out = !prompts_.empty() && plan.rows.size() == num_decode_rows;
  steps_without_prompt_rows_ = left_out ? steps_without_prompt_rows_ + 1 : 0;
}

// Rows of a sequence, at most `most`, that rows and blocks of the step still allow.
int64_t Scheduler::ChunkOf(const ScheduledSequence& sequence, const StepPlan& plan,
                           int64_t most) const {
  int64_t planned = 0;
  for (const PhaseLoad& phase : plan.load.phases) planned += phase.tokens;
  int64_t chunk = std::min(most, sequence.rows_left());
  if (sequence.facts.max_chunk > 0) chunk = std::min(chunk, sequence.facts.max_chunk);
  chunk = std::min(chunk, limits_.max_num_batched_tokens - planned);
  const int64_t blocks = sequence.held_blocks + room_.free_blocks;
  return std::clamp<int64_t>(blocks * limits_.block_tokens - sequence.computed_len, 0, chunk);
}

void Scheduler::PlanRows(const ScheduledSequence& sequence, int64_t num_tokens, StepPlan& plan) {
  const int64_t end = sequence.computed_len + num_tokens;
  room_.free_blocks -= std::max<int64_t>(0, BlocksFor(end) - sequence.held_blocks);
  plan.rows.push_back(
      {.id = sequence.facts.id, .num_tokens = num_tokens, .phase = sequence.phase()});
  plan.load.Add(sequence.phase(), sequence.computed_len, num_tokens);
}

// Nobody can go on, and nobody's reader will change that.
bool Scheduler::IsStuck(const StepPlan& plan) const {
  if (!plan.rows.empty() || !plan.preemptions.empty()) return false;
  return std::none_of(sequences_.begin(), sequences_.end(),
                      [](const ScheduledSequence& sequence) { return sequence.paused; });
}

// A waiting request that holds blocks gives them back, or else the running one of least standing,
// or else the request that finds too few even alone.
void Scheduler::RefuseOneThatBlocks(StepPlan& plan) {
  const ScheduledSequence* refused = nullptr;
  for (const ScheduledSequence* sequence : waiting_) {
    if (sequence->held_blocks > 0) refused = sequence;
  }
  if (refused == nullptr && !running_.empty()) refused = running_.back();
  if (refused == nullptr && !waiting_.empty()) refused = waiting_.front();
  if (refused == nullptr) return;
  plan.refusals.push_back({.id = refused->facts.id, .reason = RefuseReason::kNoBlocks});
  Remove(refused->facts.id);
}

// ---- facts ----

ScheduledSequence* Scheduler::Find(RequestId id) {
  const auto found = std::lower_bound(
      sequences_.begin(), sequences_.end(), id,
      [](const ScheduledSequence& s, RequestId other) { return s.facts.id < other; });
  return found != sequences_.end() && found->facts.id == id ? &*found : nullptr;
}

int64_t Scheduler::BlocksFor(int64_t num_tokens) const {
  return (num_tokens + limits_.block_tokens - 1) / limits_.block_tokens;
}

int64_t Scheduler::MissingBlocks(const ScheduledSequence& sequence) const {
  return std::max<int64_t>(0, BlocksFor(sequence.known_len) - sequence.held_blocks);
}

bool Scheduler::IsAged(const ScheduledSequence& sequence) const {
  return sequence.Waited(now_us_) >= limits_.aging_us;
}

int64_t Scheduler::num_running() const {
  return std::count_if(sequences_.begin(), sequences_.end(),
                       [](const ScheduledSequence& sequence) { return sequence.running; });
}

int64_t Scheduler::num_waiting() const { return std::ssize(sequences_) - num_running(); }

bool Scheduler::CheckIntegrity() const {
  RequestId previous = std::numeric_limits<RequestId>::min();
  for (const ScheduledSequence& sequence : sequences_) {
    const RequestFacts& facts = sequence.facts;
    const bool lengths = sequence.computed_len >= 0 && sequence.rows_left() >= 1 &&
                         sequence.known_len >= facts.prompt_len &&
                         sequence.known_len <= facts.prompt_len + facts.max_tokens;
    const bool blocks = sequence.shared_blocks <= sequence.held_blocks &&
                        sequence.held_blocks <= BlocksFor(sequence.known_len) &&
                        (!sequence.running ||
                         sequence.held_blocks >= facts.num_cached_tokens / limits_.block_tokens ||
                         sequence.shared_blocks == 0);
    if (facts.id <= previous || !lengths || !blocks) return false;
    previous = facts.id;
  }
  return num_running() <= limits_.max_num_seqs;
}

}  // namespace deepinfer
