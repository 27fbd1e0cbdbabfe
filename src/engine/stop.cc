#include "engine/stop.h"

#include <algorithm>

namespace deepinfer {

size_t PendingLength(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == stop.substr(0, length)) return length;
  }
  return 0;
}

const std::string* StopStrings::Add(std::string_view text, std::string& shown) {
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
  const size_t certain = found != nullptr ? first : held_.size() - pending;
  shown.append(held_, 0, certain);
  held_.erase(0, found != nullptr ? held_.size() : certain);
  return found;
}

void StopStrings::Flush(std::string& shown) {
  shown.append(held_);
  held_.clear();
}

}  // namespace deepinfer
