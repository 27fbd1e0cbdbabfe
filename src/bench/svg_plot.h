// The parts of a log-log plot as SVG text.
#pragma once

#include <string>
#include <string_view>

namespace deepinfer {

// Decades of one axis, mapped to pixels.
struct LogAxis {
  double low;   // log10
  double high;  // log10
  double from;  // pixel of low
  double to;    // pixel of high

  double At(double value) const;
  // Whole decades around the value too.
  void Widen(double value);
};

// The whole picture's size and margins in pixels.
struct PlotFrame {
  double width = 960;
  double height = 600;
  double left = 70;
  double right = 70;
  double top = 50;
  double bottom = 60;
};

std::string SvgLine(double x1, double y1, double x2, double y2, std::string_view style);
std::string SvgText(double x, double y, std::string_view text, std::string_view style);
// Upright, beside a vertical axis.
std::string SvgSideText(double x, double y, std::string_view text, std::string_view style);
// Lines and numbers of each decade.
std::string SvgGrid(const LogAxis& x, const LogAxis& y);
// Opens the document: background and title.
std::string SvgBegin(const PlotFrame& frame, std::string_view title);
inline constexpr std::string_view kSvgEnd = "</svg>\n";

}  // namespace deepinfer
