// Ends of a generated text: stop strings that may be split over tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deepinfer {

// Longest end of `text` that is a proper prefix of `stop`, which is not empty.
size_t PendingLength(std::string_view text, std::string_view stop);

// Looks for stop strings in text that arrives in pieces, and holds back what may still become one.
// Not thread-safe.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Appends to `shown` what is certain now.  Returns the stop string that was found, or null; it
  // and what follows it are never shown, and nothing may be added after it.
  const std::string* Add(std::string_view text, std::string& shown);
  // Appends what is left when the text ends by itself.
  void Flush(std::string& shown);

 private:
  std::vector<std::string> stops_;
  std::string held_;  // shown by nobody yet: a proper prefix of some stop string
};

}  // namespace deepinfer
