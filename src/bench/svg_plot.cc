#include "bench/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace deepinfer {
namespace {

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

double LogAxis::At(double value) const {
  return from + (std::log10(value) - low) / (high - low) * (to - from);
}

void LogAxis::Widen(double value) {
  low = std::min(low, std::floor(std::log10(value)));
  high = std::max(high, std::ceil(std::log10(value)));
}

std::string SvgLine(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

std::string SvgText(double x, double y, std::string_view text, std::string_view style) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, Escaped(text));
}

std::string SvgSideText(double x, double y, std::string_view text, std::string_view style) {
  return SvgText(
      0, 0, text,
      fmt::format("text-anchor=\"middle\" transform=\"translate({:.0f},{:.0f}) rotate(-90)\" {}", x,
                  y, style));
}

std::string SvgGrid(const LogAxis& x, const LogAxis& y) {
  std::string svg;
  for (int decade = static_cast<int>(x.low); decade <= static_cast<int>(x.high); ++decade) {
    const double at = x.At(std::pow(10, decade));
    svg += SvgLine(at, y.from, at, y.to, "stroke=\"#ddd\"");
    svg += SvgText(at, y.from + 18, fmt::format("{:g}", std::pow(10, decade)),
                   "text-anchor=\"middle\" fill=\"#555\"");
  }
  for (int decade = static_cast<int>(y.low); decade <= static_cast<int>(y.high); ++decade) {
    const double at = y.At(std::pow(10, decade));
    svg += SvgLine(x.from, at, x.to, at, "stroke=\"#ddd\"");
    svg += SvgText(x.from - 8, at + 4, fmt::format("{:g}", std::pow(10, decade)),
                   "text-anchor=\"end\" fill=\"#555\"");
  }
  return svg;
}

std::string SvgBegin(const PlotFrame& frame, std::string_view title) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
             "width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
             frame.width, frame.height) +
         SvgText(frame.left, 26, title, "font-size=\"15\" fill=\"#111\"");
}

}  // namespace deepinfer
