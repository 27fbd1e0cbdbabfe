// Reads the answers of requests that were submitted with callbacks, and calls them: one thread, so
// that a callback that blocks holds up other callbacks and nothing else.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "deepinfer/answer.h"
#include "engine/answer_channel.h"

namespace deepinfer {

// Thread-safe; its lock is never held together with another, nor during a callback.
class CallbackThread {
 public:
  CallbackThread();
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;
  // Makes the calls that are due, then ends.  Precondition: every channel it was given has ended.
  ~CallbackThread();

  // Before the channel can have anything to read.
  void Add(std::shared_ptr<AnswerChannel> channel, RequestCallbacks callbacks);
  // Takes back an Add whose request was refused.
  void Remove(int64_t id);
  // The channel may have something to read.
  void Ready(int64_t id);

 private:
  struct Reader {
    std::shared_ptr<AnswerChannel> channel;  // shared with the loop
    RequestCallbacks callbacks;
    bool queued = false;  // in ready_; guarded by mutex_
  };
  void Run();
  // Calls back what there is.  Whether that was all of the answer.
  static bool Serve(Reader& reader);

  std::mutex mutex_;
  std::condition_variable ready_cv_;
  // Guarded by mutex_; only the thread erases a reader that was ever ready.
  std::unordered_map<int64_t, std::unique_ptr<Reader>> readers_;
  std::deque<Reader*> ready_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace deepinfer
