// What an engine has done and is doing: a snapshot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace deepinfer {

// Steps of about the same size.
struct StepsOfSize {
  int64_t num_steps = 0;
  int64_t tokens = 0;
  double seconds = 0;
};

// Time that steps spent in one kind of operation.
struct OpTime {
  std::string_view name;  // lives as long as the program
  double seconds = 0;
  int64_t calls = 0;
};

// Sums are since the engine was opened.
struct EngineStatistics {
  // Now:
  int64_t num_running = 0;   // requests that are in steps, or paused until they are read
  int64_t num_waiting = 0;   // accepted requests that wait for room
  int64_t kv_bytes = 0;      // KV memory of the sequences in flight
  int64_t kv_bytes_max = 0;  // KV memory that there is

  // Sums:
  int64_t num_accepted = 0;
  int64_t num_finished = 0;  // every accepted request is, once: answered, cancelled or failed
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  int64_t num_steps = 0;
  int64_t num_stopped_steps = 0;      // abandoned because nobody wanted them any more
  double step_seconds = 0;            // in steps, what lies between two of them included
  double sampling_seconds = 0;        // of these, choosing tokens
  double between_seconds = 0;         // of these, while no thread computed: planning and hand-over
  double idle_thread_seconds = 0;     // of all compute threads, between and while choosing tokens
  double compute_thread_seconds = 0;  // of all compute threads, all together

  // By their tokens, which are prompt tokens and one for each answer that goes on: element i holds
  // steps of more than 2^(i-1) and at most 2^i, the last one also those of more.
  std::array<StepsOfSize, 17> steps_by_size{};

  // Most time first; empty unless EngineOptions::profile.
  std::vector<OpTime> ops{};

  // The last step that ran:
  int64_t last_step_tokens = 0;
  int64_t last_step_sequences = 0;
  double last_step_seconds = 0;

  // Share of the compute threads' time in steps in which they had nothing to do.
  double idle_share() const {
    return compute_thread_seconds > 0 ? idle_thread_seconds / compute_thread_seconds : 0;
  }
  // Over all steps.
  double output_tokens_per_second() const {
    return step_seconds > 0 ? static_cast<double>(output_tokens) / step_seconds : 0;
  }
};

}  // namespace deepinfer
