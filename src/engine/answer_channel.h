// One accepted request between the loop that computes it and whoever reads its answer.
//
//   step thread --StepEvent--> text thread --pieces--> reader
//
// The text thread makes text of tokens and finds the stop strings; whoever comes first of it, the
// reader's Cancel and an error ends the answer, exactly once and without waiting for a step.  What
// the step thread computes for an ended answer is dropped.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "deepinfer/answer.h"
#include "engine/answer_text.h"
#include "engine/request.h"

namespace deepinfer {

class LoopBoard;

// Each function says whose it is.  mutex_ is held while text is made, for microseconds, and never
// together with another lock.  May outlive the loop: an ended channel touches nothing of it.
class AnswerChannel {
 public:
  using Clock = std::chrono::steady_clock;

  struct Parts {
    const Tokenizer* tokenizer = nullptr;  // outlives the answer
    AnswerLimits limits;
    SamplingParams sampling;  // with a seed
    int64_t prompt_len = 0;
    int64_t max_unread = 1;  // tokens that the loop may be ahead of the reader
    // Called, without a lock, when there is something to read and when the answer has ended.
    std::function<void(int64_t id)> on_ready;
  };
  // The board is shared because either may live longer.
  AnswerChannel(int64_t id, Parts parts, std::shared_ptr<LoopBoard> board);
  AnswerChannel(const AnswerChannel&) = delete;
  AnswerChannel& operator=(const AnswerChannel&) = delete;

  int64_t id() const { return id_; }

  // ---- any thread ----

  // Whether the answer was complete when this was called.
  bool ended() const;
  // Ends the answer with what there is.  False when it had ended.
  bool Cancel();

  // ---- the reader ----

  // Blocks until there is a piece.  Nothing when the answer has ended and is read, and when the
  // deadline passes.
  std::optional<AnswerPiece> Next(std::optional<Clock::time_point> deadline);
  // What there is now.
  std::optional<AnswerPiece> Take() { return Next(Clock::time_point::min()); }
  // Blocks until the end, lifting the bound on what is unread.  Once.
  Result<Answer> Wait();

  // ---- the step thread: never blocks ----

  bool HasRoom() const {
    return unbounded_.load() || num_sent_.load() - num_read_.load() < parts_.max_unread;
  }
  void NoteSent() { num_sent_.fetch_add(1); }

  // ---- the text thread ----

  void Start(Clock::time_point at);
  void AddPrefill(int64_t done);
  void AddToken(const ChosenToken& token, Clock::time_point at);
  void Fail(Status status);

 private:
  bool HasNews() const;
  bool End(FinishReason reason);  // from outside
  void Finish(Clock::time_point at);
  void Tell(bool ends);

  const int64_t id_;
  const Parts parts_;
  const std::shared_ptr<LoopBoard> board_;

  // Own synchronisation.  Sequentially consistent: the step thread adds to num_sent_, then looks
  // at num_read_; the reader the other way round, so one of the two sees the other's step.
  std::atomic<int64_t> num_sent_{0};
  std::atomic<int64_t> num_read_{0};
  std::atomic<bool> unbounded_{false};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::optional<AnswerText> text_;  // until the end
  AnswerPiece piece_;               // not read yet
  int64_t prompt_done_read_ = 0;
  Answer answer_;
  Status error_;
  bool ended_ = false;
  Clock::time_point start_{};
  Clock::time_point first_token_{};
};

}  // namespace deepinfer
