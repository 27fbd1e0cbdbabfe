// How far a long job is, on stderr: a bar that redraws itself on a terminal, a line now and then
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace deepinfer {

// Not thread-safe.
class Progress {
 public:
  // what: "checking"; done and total are bytes.
  explicit Progress(std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Removes the bar.
  ~Progress();

  void Update(int64_t done, int64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point last_;
};

}  // namespace deepinfer
