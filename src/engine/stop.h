// Ends of a generated text: stop strings that may be split over tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace deepinfer {

// Looks for stop strings in text that arrives in pieces, and holds back what may still become one.
// Not thread-safe.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  struct Piece {
    std::string text;      // safe to show now
    bool stopped = false;  // a stop string was found; it and what follows are not in any text
    std::string stop;      // which one
  };
  Piece Add(std::string_view text);
  // What is left when the text ends by itself.
  std::string Flush();

 private:
  std::vector<std::string> stops_;
  std::string held_;  // shown by nobody yet: a proper prefix of some stop string
};

}  // namespace deepinfer
