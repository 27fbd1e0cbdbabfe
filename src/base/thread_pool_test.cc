#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

namespace deepinfer {
namespace {

// Whether each of `count` elements is visited once, by slots that exist.
bool VisitsEachOnce(ThreadPool& pool, int64_t count, int64_t grain) {
  std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
  std::atomic<bool> slots_exist{true};
  pool.Run(count, grain, [&](int64_t begin, int64_t end, int slot) {
    if (slot < 0 || slot >= pool.num_threads()) slots_exist = false;
    for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
  });
  return slots_exist && std::ranges::all_of(visits, [](const auto& visit) { return visit == 1; });
}

TEST(ThreadPoolTest, EveryElementIsVisitedOnceForAnyGrain) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 63, 64, 1000}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        EXPECT_TRUE(VisitsEachOnce(pool, count, grain)) << threads << " " << count << " " << grain;
      }
    }
  }
}

TEST(ThreadPoolTest, ManyShortJobsInARowLoseNothing) {
  ThreadPool pool(4);
  int64_t total = 0;
  for (int job = 0; job < 20000; ++job) {
    std::atomic<int64_t> sum{0};
    pool.Run(16, 1, [&](int64_t begin, int64_t end, int /*slot*/) {
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
    total += sum;
  }
  EXPECT_EQ(total, int64_t{20000} * 120);
}

TEST(ThreadPoolTest, SleepersWakeForTheNextJob) {
  ThreadPool pool(2);
  for (int job = 0; job < 5; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> chunks{0};
    pool.Run(8, 1, [&](int64_t, int64_t, int) {
      ++chunks;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    EXPECT_EQ(chunks, 8);
  }
}

TEST(ThreadPoolTest, ASlotBelongsToOneChunkAtATime) {
  ThreadPool pool(4);
  std::atomic<int> users[4] = {};
  pool.Run(1000, 1, [&](int64_t, int64_t, int slot) {
    EXPECT_EQ(users[slot].fetch_add(1), 0);
    users[slot].fetch_sub(1);
  });
}

}  // namespace
}  // namespace deepinfer
