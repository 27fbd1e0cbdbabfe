// A batch engine behind threads of its own: callers submit and read, nobody waits for another.
//
//   callers        Submit: the request is checked and its channel made
//   step thread    plans, runs Forward, chooses tokens; alone touches model, pool and states
//   text thread    makes the text of step N-1 while step N computes, finds stop strings
//   callback thread  reads for requests with callbacks
//
// A stop string is found one step late; the row that was computed meanwhile is dropped, so answers
// equal those of Generate().  A reader that is slow pauses its own request only (AnswerChannel).
//
// Lock order: there is none to keep.  Board, channel, text queue, callbacks and figures have a lock
// each, and no thread holds two at a time.  Readers never take a lock for longer than it takes to
// move a piece; the step thread takes those of the board and the text queue, never a channel's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "deepinfer/answer.h"
#include "deepinfer/statistics.h"
#include "engine/batch_engine.h"
#include "engine/callback_thread.h"
#include "engine/loop_board.h"
#include "engine/text_thread.h"
#include "kernels/op_profile.h"

namespace deepinfer {

struct LoopOptions {
  BatchLimits limits;
  int64_t max_unread_tokens = 1024;
  bool profile = false;  // fill EngineStatistics::ops
};

// Thread-safe but for Close and destruction, which come once and after all other calls.  The model
// must outlive it, have a tokenizer, and be used by nobody else meanwhile.
class EngineLoop {
 public:
  using Clock = std::chrono::steady_clock;

  EngineLoop(ModelInstance& model, const LoopOptions& options);
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;
  ~EngineLoop();

  // InvalidArgument as CheckRequest says; Cancelled once the loop is closing.  The request starts
  // from nothing and keeps no state.
  Result<std::shared_ptr<AnswerChannel>> Submit(GenerationRequest request,
                                                std::optional<RequestCallbacks> callbacks = {});
  // The channel of a request that has not ended, or null.
  std::shared_ptr<AnswerChannel> Find(int64_t id) const { return board_->Find(id); }
  bool AwaitIdle(Clock::time_point deadline) { return board_->AwaitIdle(deadline); }
  // Requests that were cut short.
  int64_t Close(std::chrono::milliseconds grace);
  EngineStatistics Statistics() const;

 private:
  class Seat;

  void RunSteps();
  void TakeIn();
  void DropEnded();
  void LeaveSeats();
  void RecordQueues();
  void RecordStep(Clock::duration elapsed, bool stopped);

  ModelInstance& model_;
  const LoopOptions options_;
  const std::shared_ptr<LoopBoard> board_;  // shared with channels, which streams hold on to
  std::atomic<int64_t> next_id_{1};
  std::optional<CallbackThread> callbacks_;  // until Close
  std::optional<TextThread> text_;           // until Close

  mutable std::mutex figures_mutex_;
  EngineStatistics figures_;  // guarded by figures_mutex_

  // Of the step thread alone:
  OpProfile profile_;
  BatchEngine batch_;
  std::unordered_map<int64_t, std::unique_ptr<Seat>> seats_;  // by channel
  std::vector<Submitted> posted_;
  std::vector<int64_t> ended_;
  std::vector<int64_t> left_;  // seats whose request has finished in the batch
  StepEvents events_;
  int64_t step_prompt_tokens_ = 0;  // since the last RecordStep
  int64_t step_output_tokens_ = 0;

  std::thread steps_;
};

}  // namespace deepinfer
