#include "engine/stop.h"

#include <algorithm>
#include <utility>

namespace deepinfer {
namespace {

// Longest end of `text` that is a proper prefix of `stop`.
size_t PendingLength(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace

StopStrings::Piece StopStrings::Add(std::string_view text) {
  held_.append(text);
  size_t first = std::string::npos;
  const std::string* found = nullptr;
  size_t pending = 0;
  for (const std::string& stop : stops_) {
    if (stop.empty()) continue;
    const size_t at = held_.find(stop);
    if (at < first) {
      first = at;
      found = &stop;
    }
    pending = std::max(pending, PendingLength(held_, stop));
  }
  if (found != nullptr) {
    Piece piece{.text = held_.substr(0, first), .stopped = true, .stop = *found};
    held_.clear();
    return piece;
  }
  Piece piece{.text = held_.substr(0, held_.size() - pending), .stopped = false, .stop = {}};
  held_.erase(0, held_.size() - pending);
  return piece;
}

std::string StopStrings::Flush() { return std::exchange(held_, {}); }

}  // namespace deepinfer
