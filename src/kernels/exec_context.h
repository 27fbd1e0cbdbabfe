// What an op runs on: the instruction set's kernels, threads, scratch memory and the wish to stop.
// This is where another device would come in: ops take an ExecContext and never reach past it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/function_ref.h"
#include "base/pages.h"
#include "base/thread_pool.h"

namespace deepinfer {

class OpProfile;
struct KernelTable;

// Switches denormal flushing on for the calling thread while it lives (numerics.md section 1) and
// puts the old mode back afterwards.
class FlushDenormals {
 public:
  FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;
  ~FlushDenormals();

 private:
  uint64_t saved_;
};

// Bump allocator for the temporaries of a step.  Allocations are 64-byte aligned and live until the
// Scope in which they were made ends.  Grows beyond what was reserved while warming up, then
// allocates nothing.  Not thread-safe: only the step thread touches it.
class ScratchArena {
 public:
  ScratchArena() = default;
  ScratchArena(const ScratchArena&) = delete;
  ScratchArena& operator=(const ScratchArena&) = delete;

  // Uninitialised memory for `count` values of T; T must be trivial.
  template <typename T>
  T* Alloc(int64_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    return static_cast<T*>(AllocBytes(static_cast<size_t>(count) * sizeof(T)));
  }

  // Frees, at its end, everything that was allocated while it lived.
  class Scope {
   public:
    explicit Scope(ScratchArena& arena) : arena_(arena), chunk_(arena.chunk_), used_(arena.used_) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      arena_.chunk_ = chunk_;
      arena_.used_ = used_;
    }

   private:
    ScratchArena& arena_;
    size_t chunk_;
    size_t used_;
  };

  // Makes room for so many bytes in one piece, before the first allocation.  Costs address space
  // until it is used.
  void Reserve(size_t bytes);
  // Bytes held from the system.
  size_t capacity() const;
  // Most bytes that were in use at a time, the unused ends of full chunks included.
  size_t peak() const { return peak_; }

 private:
  void* AllocBytes(size_t bytes);

  std::vector<PageBuffer> chunks_;
  size_t chunk_ = 0;  // chunks_[chunk_] is being filled; equals chunks_.size() when none is
  size_t used_ = 0;   // bytes of it in use
  size_t peak_ = 0;
};

// One per model instance.  Not thread-safe: one step at a time runs on it.
class ExecContext {
 public:
  explicit ExecContext(const KernelTable& kernels, int num_threads = 1)
      : kernels_(&kernels), pool_(num_threads) {}

  const KernelTable& kernels() const { return *kernels_; }
  ScratchArena& scratch() { return scratch_; }
  // Ops add their times to it, if there is one; borrowed.
  OpProfile* profile() const { return profile_; }
  void set_profile(OpProfile* profile) { profile_ = profile; }

  // Calls body(begin, end) on disjoint ranges that cover [0, count), each a multiple of `grain`
  // long (the last may be shorter).  Which thread takes which range must not matter for the result.
  // Ranges that have not begun when a stop is requested are left out: after that, nothing that a
  // step computes may be used.
  void ParallelFor(int64_t count, int64_t grain,
                   FunctionRef<void(int64_t begin, int64_t end)> body);
  // The same; slot in [0, num_threads()) names a work area that no other range uses meanwhile.
  void ParallelForSlots(int64_t count, int64_t grain, ThreadPool::Body body);
  // The same whether or not a stop is requested: for short work that a committed step is owed.
  void ParallelForAll(int64_t count, int64_t grain, ThreadPool::Body body);
  int num_threads() const { return pool_.num_threads(); }

  // Asks the running step to stop: it ends within the milliseconds that a range of work takes, with
  // nothing committed.  Callable from any thread and from a signal handler.
  void RequestStop() { stop_.store(true, std::memory_order_relaxed); }
  void ClearStop() { stop_.store(false, std::memory_order_relaxed); }
  bool StopRequested() const { return stop_.load(std::memory_order_relaxed); }

 private:
  const KernelTable* kernels_;
  ThreadPool pool_;
  ScratchArena scratch_;
  OpProfile* profile_ = nullptr;
  std::atomic<bool> stop_{false};
};

}  // namespace deepinfer
