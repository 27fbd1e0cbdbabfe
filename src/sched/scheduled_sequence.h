// One request inside the scheduler: how far it is and what it holds; and the two orders of
// requests.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/step_plan.h"

namespace deepinfer {

struct ScheduledSequence {
  RequestFacts facts;
  bool running = false;
  bool paused = false;             // its reader cannot take more: no rows
  int64_t computed_len = 0;        // rows whose KV is valid, < known_len
  int64_t known_len = 0;           // prompt and output tokens
  int64_t held_blocks = 0;         // of the pool
  int64_t shared_blocks = 0;       // of them those that a cache may hold too: preempting frees none
  int64_t served_us = 0;           // when it last got a row; before that, when it arrived
  int64_t protected_until_us = 0;  // no priority takes its memory before

  int64_t rows_left() const { return known_len - computed_len; }
  bool has_output() const { return known_len > facts.prompt_len; }
  Phase phase() const {
    return has_output() && rows_left() == 1 ? Phase::kDecode : Phase::kPrefill;
  }
  // Priority with what waiting added to it.
  int64_t Level(int64_t now_us, int64_t aging_us) const {
    return facts.priority + Waited(now_us) / aging_us;
  }
  int64_t Waited(int64_t now_us) const { return std::max<int64_t>(0, now_us - served_us); }
  bool Protected(int64_t now_us) const { return now_us < protected_until_us; }
};

// Who gets room and prompt rows first.
struct MoreUrgent {
  int64_t now_us;
  int64_t aging_us;

  bool operator()(const ScheduledSequence& a, const ScheduledSequence& b) const {
    const int64_t level_a = a.Level(now_us, aging_us);
    const int64_t level_b = b.Level(now_us, aging_us);
    if (level_a != level_b) return level_a > level_b;
    if (a.rows_left() != b.rows_left()) return a.rows_left() < b.rows_left();
    return EarlierArrival(a, b);
  }
  static bool EarlierArrival(const ScheduledSequence& a, const ScheduledSequence& b) {
    if (a.facts.arrival_us != b.facts.arrival_us) return a.facts.arrival_us < b.facts.arrival_us;
    return a.facts.id < b.facts.id;
  }
};

// Who keeps its memory when there is too little; the last one is preempted first.
struct BetterStanding {
  int64_t now_us;

  bool operator()(const ScheduledSequence& a, const ScheduledSequence& b) const {
    if (a.paused != b.paused) return b.paused;
    if (a.Protected(now_us) != b.Protected(now_us)) return a.Protected(now_us);
    if (a.facts.priority != b.facts.priority) return a.facts.priority > b.facts.priority;
    return MoreUrgent::EarlierArrival(a, b);
  }
};

}  // namespace deepinfer
