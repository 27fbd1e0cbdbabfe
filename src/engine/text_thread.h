// Makes the text of step N-1 while step N computes: takes over what each step brought about and
// carries it to the channels of its answers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/answer_channel.h"
#include "engine/request.h"

namespace deepinfer {

// What one step brought about, in order; grows while warming up, then allocates nothing.
class StepEvents {
 public:
  using Clock = AnswerChannel::Clock;
  using Channel = std::shared_ptr<AnswerChannel>;  // the loop may drop it before the text is made

  void AddStart(const Channel& channel) {
    events_.push_back({.kind = Kind::kStart, .channel = channel, .at = Clock::now()});
  }
  void AddPrefill(const Channel& channel, int64_t done) {
    events_.push_back({.kind = Kind::kPrefill, .channel = channel, .prefill_done = done});
  }
  void AddToken(const Channel& channel, const ChosenToken& token);
  void AddFailure(const Channel& channel, Status status) {
    events_.push_back({.kind = Kind::kFailure, .channel = channel, .status = std::move(status)});
  }

  bool empty() const { return events_.empty(); }
  void Clear();
  void Append(StepEvents& later);
  // Tells the channels.
  void Deliver() const;

 private:
  enum class Kind { kStart, kPrefill, kToken, kFailure };
  struct Event {
    Kind kind;
    Channel channel;
    Clock::time_point at{};
    int64_t prefill_done = 0;
    int32_t token = 0;
    float logprob = 0;
    size_t num_top = 0;  // the next of top_
    Status status;
  };
  std::vector<Event> events_;
  std::vector<TokenLogprob> top_;
};

// Runs at the priority of its maker, above that of the compute threads.
class TextThread {
 public:
  TextThread();
  TextThread(const TextThread&) = delete;
  TextThread& operator=(const TextThread&) = delete;
  // Delivers what is left, then ends.
  ~TextThread();

  // Takes the events over and leaves `events` empty.  Never blocks for longer than a swap.
  void Post(StepEvents& events);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable posted_cv_;
  StepEvents posted_;      // guarded by mutex_
  bool stopping_ = false;  // guarded by mutex_
  StepEvents delivering_;  // of the thread alone
  std::thread thread_;
};

}  // namespace deepinfer
