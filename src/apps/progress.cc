#include "apps/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "inspect/render.h"

namespace deepinfer {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr int kWidth = 30;

std::string Amount(int64_t value, ProgressUnit unit) {
  return unit == ProgressUnit::kBytes ? ShortBytes(value) : Grouped(value);
}

std::string_view UnitName(ProgressUnit unit) {
  switch (unit) {
    case ProgressUnit::kBytes:
      return "";  // ShortBytes names it
    case ProgressUnit::kTokens:
      return " tokens";
    case ProgressUnit::kFiles:
      return " files";
  }
  return "";
}

}  // namespace

Progress::Progress(std::string what, ProgressUnit unit)
    : what_(std::move(what)),
      unit_(unit),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::Update(int64_t done, int64_t total) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || total <= 0 || now - last_ < kRedraw) return;
  last_ = now;
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto rate = static_cast<int64_t>(static_cast<double>(done) / std::max(seconds, 1e-9));
  const std::string filled(static_cast<size_t>(share * kWidth), '#');
  fmt::print(stderr, "\r{} [{:<{}}] {:3.0f} %  {} of {}{}, {}/s\x1b[K", what_, filled, kWidth,
             100 * share, Amount(done, unit_), Amount(total, unit_), UnitName(unit_),
             Amount(rate, unit_));
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace deepinfer
