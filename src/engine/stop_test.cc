#include "engine/stop.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

// What one more piece shows.
std::string Shown(StopStrings& stops, std::string_view text) {
  std::string shown;
  EXPECT_EQ(stops.Add(text, shown), nullptr);
  return shown;
}

TEST(StopStringsTest, AStopSplitOverPiecesIsFoundAndNeverShown) {
  StopStrings stops({"END", "\n\n"});
  EXPECT_EQ(Shown(stops, "abc E"), "abc ");
  EXPECT_EQ(Shown(stops, "N"), "");
  std::string shown;
  const std::string* found = stops.Add("D tail", shown);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, "END");
  EXPECT_EQ(shown, "");
}

TEST(StopStringsTest, HeldTextIsShownWhenItTurnsOutHarmless) {
  StopStrings stops({"END"});
  EXPECT_EQ(Shown(stops, "xEN"), "x");
  EXPECT_EQ(Shown(stops, "Y"), "ENY");
  EXPECT_EQ(Shown(stops, "E"), "");
  std::string shown;
  stops.Flush(shown);
  EXPECT_EQ(shown, "E");
}

TEST(StopStringsTest, TheEarliestStopWins) {
  StopStrings stops({"later", "soon"});
  std::string shown;
  const std::string* found = stops.Add("a soon b later", shown);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, "soon");
  EXPECT_EQ(shown, "a ");
}

TEST(StopStringsTest, WithoutStopsEverythingIsShownAtOnce) {
  StopStrings stops({""});
  EXPECT_EQ(Shown(stops, "abc"), "abc");
}

}  // namespace
}  // namespace deepinfer
