// How far a long job is, on stderr: a bar that redraws itself on a terminal, nothing elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace deepinfer {

enum class ProgressUnit { kBytes, kTokens, kFiles };

// Not thread-safe.
class Progress {
 public:
  // what: "checking"
  Progress(std::string what, ProgressUnit unit);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Removes the bar.
  ~Progress();

  // Draws the bar when it is time to.
  void Update(int64_t done, int64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  ProgressUnit unit_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point last_;
};

}  // namespace deepinfer
