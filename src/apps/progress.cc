#include "apps/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "inspect/render.h"

namespace deepinfer {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLineEvery = std::chrono::seconds(30);
constexpr int kWidth = 30;

}  // namespace

Progress::Progress(std::string what)
    : what_(std::move(what)),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::Update(int64_t done, int64_t total) {
  const Clock::time_point now = Clock::now();
  if (total <= 0 || now - last_ < (terminal_ ? Clock::duration(kRedraw) : kLineEvery)) return;
  last_ = now;
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const auto rate = static_cast<int64_t>(static_cast<double>(done) / std::max(seconds, 1e-9));
  const std::string figures = fmt::format("{:3.0f} %  {} of {}, {}/s", 100 * share,
                                          ShortBytes(done), ShortBytes(total), ShortBytes(rate));
  if (!terminal_) {
    fmt::print(stderr, "{}: {}\n", what_, figures);
    return;
  }
  const int filled = static_cast<int>(share * kWidth);
  fmt::print(stderr, "\r{} [{:<{}}] {}\x1b[K", what_, std::string(static_cast<size_t>(filled), '#'),
             kWidth, figures);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace deepinfer
