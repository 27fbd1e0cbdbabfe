#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/render.h"

namespace deepinfer {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 600;
constexpr double kLeft = 70;
constexpr double kRight = 30;
constexpr double kTop = 50;
constexpr double kBottom = 60;

// Decades of one axis, mapped to pixels.
struct LogAxis {
  double low;   // log10
  double high;  // log10
  double from;  // pixel of low
  double to;    // pixel of high

  double At(double value) const {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
};

std::string Line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

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

std::string Text(double x, double y, std::string_view text, std::string_view style) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, Escaped(text));
}

std::string Grid(const LogAxis& x, const LogAxis& y) {
  std::string svg;
  for (int decade = static_cast<int>(x.low); decade <= static_cast<int>(x.high); ++decade) {
    const double at = x.At(std::pow(10, decade));
    svg += Line(at, y.from, at, y.to, "stroke=\"#ddd\"");
    svg += Text(at, y.from + 18, fmt::format("{:g}", std::pow(10, decade)),
                "text-anchor=\"middle\" fill=\"#555\"");
  }
  for (int decade = static_cast<int>(y.low); decade <= static_cast<int>(y.high); ++decade) {
    const double at = y.At(std::pow(10, decade));
    svg += Line(x.from, at, x.to, at, "stroke=\"#ddd\"");
    svg += Text(x.from - 8, at + 4, fmt::format("{:g}", std::pow(10, decade)),
                "text-anchor=\"end\" fill=\"#555\"");
  }
  return svg;
}

std::string Roofs(const Roofline& roofline, const LogAxis& x, const LogAxis& y) {
  const double ridge = roofline.bf16() / roofline.dram();
  const double first = std::pow(10, x.low);
  const std::string_view style = "stroke=\"#c33\" stroke-width=\"2\"";
  std::string svg =
      Line(x.from, y.At(first * roofline.dram()), x.At(ridge), y.At(roofline.bf16()), style);
  svg += Line(x.At(ridge), y.At(roofline.bf16()), x.to, y.At(roofline.bf16()), style);
  svg += Text(x.to, y.At(roofline.bf16()) - 8, fmt::format("bf16 {:.0f} GMAC/s", roofline.bf16()),
              "text-anchor=\"end\" fill=\"#c33\"");
  svg += Text(x.from + 10, y.At(first * roofline.dram()) - 14,
              fmt::format("memory {:.1f} GB/s", roofline.dram()), "fill=\"#c33\"");
  return svg;
}

std::string Points(std::span<const BenchResult> results, const LogAxis& x, const LogAxis& y) {
  std::string svg;
  for (const BenchResult& result : results) {
    if (result.gbytes <= 0 || result.gmacs <= 0) continue;
    const double px = x.At(result.gmacs / result.gbytes);
    const double py = y.At(result.gmacs);
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#26c\"><title>{} {} rows: {:.1f} "
        "GMAC/s, {:.1f} GB/s, {:.0f} % of {}</title></circle>\n",
        px, py, result.name, result.rows, result.gmacs, result.gbytes, result.percent_of_limit,
        result.limit);
    svg += Text(px + 5, py + 3, fmt::format("{} {}", result.name, result.rows),
                "font-size=\"8\" fill=\"#333\"");
  }
  return svg;
}

// Whole decades around the values of all points and roofs.
void Widen(double value, LogAxis& axis) {
  axis.low = std::min(axis.low, std::floor(std::log10(value)));
  axis.high = std::max(axis.high, std::ceil(std::log10(value)));
}

}  // namespace

std::string RooflineSvg(const Roofline& roofline, std::span<const BenchResult> results) {
  LogAxis x{.low = 0, .high = 3, .from = kLeft, .to = kWidth - kRight};
  LogAxis y{.low = 1, .high = 2, .from = kHeight - kBottom, .to = kTop};
  Widen(roofline.bf16(), y);
  Widen(roofline.dram(), y);
  for (const BenchResult& result : results) {
    if (result.gbytes <= 0 || result.gmacs <= 0) continue;
    Widen(result.gmacs / result.gbytes, x);
    Widen(result.gmacs, y);
  }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += Text(kLeft, 26,
              fmt::format("{}, {}, {} threads", roofline.processor, roofline.isa,
                          roofline.dram_gbps.size()),
              "font-size=\"15\" fill=\"#111\"");
  svg += Grid(x, y);
  svg += Roofs(roofline, x, y);
  svg += Points(results, x, y);
  svg += Text((x.from + x.to) / 2, kHeight - 16, "multiply-accumulates per byte of memory",
              "text-anchor=\"middle\" fill=\"#111\"");
  svg += Text(0, 0, "GMAC/s",
              fmt::format("text-anchor=\"middle\" fill=\"#111\" transform=\"translate(18,{:.0f}) "
                          "rotate(-90)\"",
                          (y.from + y.to) / 2));
  return svg + "</svg>\n";
}

}  // namespace deepinfer
