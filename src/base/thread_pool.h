// Threads that share the chunks of one job at a time.
//
// Chunks are claimed dynamically, so a thread whose core is taken away delays only the chunk it
// holds: nobody waits for threads that have not woken up.  Idle threads spin for a moment, then
// sleep on a futex.  All coordination is in one word, ticket_ = job number, chunks not yet claimed:
//
//   1. Run() writes the job's fields, then publishes a ticket with all chunks unclaimed.
//   2. A thread claims a chunk by decrementing the ticket; it may read the job's fields only after
//      that, when the job cannot end without it.
//   3. The caller claims chunks like the others, then waits until every chunk is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace deepinfer {

// Run() may be called by one thread at a time.  Destruction joins the threads.
class ThreadPool {
 public:
  // Called on every thread of the pool before its first job, the caller's excluded.
  using ThreadSetup = void (*)();

  // num_threads counts the caller of Run().  Threads of the pool run at a lower priority than the
  // thread that made it, so that whoever feeds them is never kept waiting by them.
  explicit ThreadPool(int num_threads, ThreadSetup setup = nullptr);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // body(begin, end, slot) for disjoint ranges that cover [0, count), `grain` long but for the
  // last. slot in [0, num_threads()) is the running thread's own.  Returns when all are done.
  using Body = FunctionRef<void(int64_t begin, int64_t end, int slot)>;
  void Run(int64_t count, int64_t grain, Body body);

 private:
  void Work(int slot, ThreadSetup setup);
  // Claims and runs chunks until none is left unclaimed.
  void RunChunks(int slot);

  std::vector<std::thread> workers_;  // constant after construction

  // The job; written by Run() while no chunk is claimed or unclaimed.
  const Body* body_ = nullptr;
  int64_t count_ = 0;
  int64_t grain_ = 0;
  int64_t num_chunks_ = 0;

  alignas(64) std::atomic<uint64_t> ticket_{0};   // job number << 40 | chunks not yet claimed
  alignas(64) std::atomic<int64_t> num_done_{0};  // chunks of the job that are done
  alignas(64) std::atomic<uint32_t> wake_{0};     // futex of idle threads; counts jobs
  std::atomic<uint32_t> num_sleeping_{0};
  std::atomic<uint32_t> finished_{0};  // futex of the caller; counts finished jobs
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stop_{false};
};

}  // namespace deepinfer
