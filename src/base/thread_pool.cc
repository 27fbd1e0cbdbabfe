#include "base/thread_pool.h"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr int kUnclaimedBits = 40;
constexpr uint64_t kUnclaimedMask = (uint64_t{1} << kUnclaimedBits) - 1;

// A step's ops follow each other within microseconds: spinning about 50 us bridges the gaps, and a
// sleeper costs a system call of about 5 us to wake.
constexpr int kSpins = 2000;

// Added to the nice value of the pool's threads.
constexpr int kNicer = 5;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void FutexWait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr,
          0);
}

void FutexWake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr,
          nullptr, 0);
}

void LowerPriority() {
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  const int nice = getpriority(PRIO_PROCESS, thread);
  setpriority(PRIO_PROCESS, thread, std::min(nice + kNicer, 19));  // best effort
}

}  // namespace

ThreadPool::ThreadPool(int num_threads, ThreadSetup setup) {
  CHECK_GE(num_threads, 1);
  workers_.reserve(static_cast<size_t>(num_threads - 1));
  for (int slot = 1; slot < num_threads; ++slot) {
    workers_.emplace_back([this, slot, setup] { Work(slot, setup); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  wake_.fetch_add(1);
  FutexWake(wake_, INT_MAX);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int64_t count, int64_t grain, Body body) {
  CHECK_GT(grain, 0);
  if (count <= 0) return;
  const int64_t num_chunks = (count + grain - 1) / grain;
  if (num_chunks == 1 || workers_.empty()) {
    for (int64_t begin = 0; begin < count; begin += grain) {
      body(begin, std::min(begin + grain, count), 0);
    }
    return;
  }
  body_ = &body;
  count_ = count;
  grain_ = grain;
  num_chunks_ = num_chunks;
  num_done_.store(0, std::memory_order_relaxed);
  const uint64_t job = (ticket_.load(std::memory_order_relaxed) >> kUnclaimedBits) + 1;
  ticket_.store(job << kUnclaimedBits | static_cast<uint64_t>(num_chunks),
                std::memory_order_seq_cst);
  wake_.fetch_add(1, std::memory_order_seq_cst);
  if (num_sleeping_.load(std::memory_order_seq_cst) > 0) {
    FutexWake(wake_, static_cast<int>(std::min<int64_t>(num_chunks - 1, INT_MAX)));
  }
  RunChunks(0);
  for (int spin = 0; num_done_.load(std::memory_order_acquire) < num_chunks; ++spin) {
    if (spin < kSpins) {
      Pause();
      continue;
    }
    const uint32_t seen = finished_.load(std::memory_order_seq_cst);
    caller_sleeps_.store(true, std::memory_order_seq_cst);
    if (num_done_.load(std::memory_order_seq_cst) < num_chunks) FutexWait(finished_, seen);
    caller_sleeps_.store(false, std::memory_order_relaxed);
  }
}

void ThreadPool::RunChunks(int slot) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while ((ticket & kUnclaimedMask) > 0) {
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      continue;
    }
    // The claim keeps the job alive: its fields are safe to read now.
    const int64_t num_chunks = num_chunks_;
    const int64_t chunk = num_chunks - static_cast<int64_t>(ticket & kUnclaimedMask);
    const int64_t begin = chunk * grain_;
    (*body_)(begin, std::min(begin + grain_, count_), slot);
    if (num_done_.fetch_add(1, std::memory_order_seq_cst) + 1 == num_chunks) {
      finished_.fetch_add(1, std::memory_order_seq_cst);
      if (caller_sleeps_.load(std::memory_order_seq_cst)) FutexWake(finished_, 1);
      return;
    }
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::Work(int slot, ThreadSetup setup) {
  LowerPriority();
  if (setup != nullptr) setup();
  while (!stop_.load(std::memory_order_relaxed)) {
    const uint32_t seen = wake_.load(std::memory_order_seq_cst);
    RunChunks(slot);
    int spin = 0;
    while (spin < kSpins && wake_.load(std::memory_order_relaxed) == seen) {
      Pause();
      ++spin;
    }
    if (spin < kSpins) continue;
    num_sleeping_.fetch_add(1, std::memory_order_seq_cst);
    if (wake_.load(std::memory_order_seq_cst) == seen) FutexWait(wake_, seen);
    num_sleeping_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

}  // namespace deepinfer
