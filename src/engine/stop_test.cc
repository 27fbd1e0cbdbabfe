#include "engine/stop.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(StopStringsTest, AStopSplitOverPiecesIsFoundAndNeverShown) {
  StopStrings stops({"END", "\n\n"});
  EXPECT_EQ(stops.Add("abc E").text, "abc ");
  EXPECT_EQ(stops.Add("N").text, "");
  const StopStrings::Piece piece = stops.Add("D tail");
  EXPECT_TRUE(piece.stopped);
  EXPECT_EQ(piece.text, "");
  EXPECT_EQ(piece.stop, "END");
}

TEST(StopStringsTest, HeldTextIsShownWhenItTurnsOutHarmless) {
  StopStrings stops({"END"});
  EXPECT_EQ(stops.Add("xEN").text, "x");
  EXPECT_EQ(stops.Add("Y").text, "ENY");
  EXPECT_EQ(stops.Add("E").text, "");
  EXPECT_EQ(stops.Flush(), "E");
}

TEST(StopStringsTest, TheEarliestStopWins) {
  StopStrings stops({"later", "soon"});
  const StopStrings::Piece piece = stops.Add("a soon b later");
  EXPECT_EQ(piece.text, "a ");
  EXPECT_EQ(piece.stop, "soon");
}

TEST(StopStringsTest, WithoutStopsEverythingIsShownAtOnce) {
  StopStrings stops({});
  EXPECT_EQ(stops.Add("abc").text, "abc");
}

}  // namespace
}  // namespace deepinfer
