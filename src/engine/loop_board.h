// What the threads around an engine loop tell each other: which requests are open, what has come
// in, when the step thread should look again, and when nobody wants its step any more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/answer_channel.h"
#include "engine/request.h"
#include "kernels/exec_context.h"

namespace deepinfer {

// A request on its way to the step thread.
struct Submitted {
  std::shared_ptr<AnswerChannel> channel;  // shared with the reader
  GenerationRequest request;
};

// Thread-safe; one lock, under which no other is taken.  Outlives the loop in the hands of streams:
// when those have ended, they call nothing that touches the context.
class LoopBoard {
 public:
  using Clock = std::chrono::steady_clock;

  explicit LoopBoard(ExecContext& context) : context_(context) {}
  LoopBoard(const LoopBoard&) = delete;
  LoopBoard& operator=(const LoopBoard&) = delete;

  // ---- callers ----

  // Opens a request; false, and nothing happens, when the loop is closing.
  bool Post(Submitted submitted);
  // The channel of an open request, or null.
  std::shared_ptr<AnswerChannel> Find(int64_t id) const;
  // Whether no request is open; waits for it until then.
  bool AwaitIdle(Clock::time_point deadline);
  // Post fails from now on.
  void Close();
  std::vector<std::shared_ptr<AnswerChannel>> Open() const;
  // Await returns false from now on.  Precondition: no request is open, and none can be.
  void Stop();
  struct Counts {
    int64_t accepted = 0;  // ever
    int64_t open = 0;      // of them, not ended
    int64_t posted = 0;    // of these, not handed to the step thread
  };
  Counts counts() const;

  // ---- channels ----

  // The step thread looks again at what can run.
  void Wake();
  // Once for each open request.  When it was the last that the step thread knew, the step that is
  // running is asked to stop.
  void Ended(int64_t id);

  // ---- the step thread ----

  // Blocks unless `runnable` or something has come up.  Hands out what was posted and the ids of
  // what has ended since the last call.  False when the loop is to end.
  bool Await(bool runnable, std::vector<Submitted>& posted, std::vector<int64_t>& ended);
  // Around a step.  BeginStep is false when nobody would want it.
  bool BeginStep();
  void EndStep();

 private:
  struct Entry {
    std::shared_ptr<AnswerChannel> channel;
    bool handed_out = false;
  };

  ExecContext& context_;

  mutable std::mutex mutex_;
  std::condition_variable step_;  // the step thread waits on it
  std::condition_variable idle_;
  // Guarded by mutex_:
  std::unordered_map<int64_t, Entry> open_;
  std::vector<Submitted> posted_;
  std::vector<int64_t> ended_;  // handed out, and ended since
  int64_t num_handed_out_ = 0;  // of open_
  int64_t num_accepted_ = 0;
  bool woken_ = false;
  bool stepping_ = false;
  bool closing_ = false;
  bool stopping_ = false;
};

}  // namespace deepinfer
