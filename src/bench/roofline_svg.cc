#include <fmt/format.h>

#include <cmath>

#include "bench/render.h"
#include "bench/svg_plot.h"

namespace deepinfer {
namespace {

constexpr PlotFrame kFrame{.right = 30};

std::string Roofs(const Roofline& roofline, const LogAxis& x, const LogAxis& y) {
  const double ridge = roofline.bf16() / roofline.dram();
  const double first = std::pow(10, x.low);
  const std::string_view style = "stroke=\"#c33\" stroke-width=\"2\"";
  std::string svg =
      SvgLine(x.from, y.At(first * roofline.dram()), x.At(ridge), y.At(roofline.bf16()), style);
  svg += SvgLine(x.At(ridge), y.At(roofline.bf16()), x.to, y.At(roofline.bf16()), style);
  svg +=
      SvgText(x.to, y.At(roofline.bf16()) - 8, fmt::format("bf16 {:.0f} GMAC/s", roofline.bf16()),
              "text-anchor=\"end\" fill=\"#c33\"");
  svg += SvgText(x.from + 10, y.At(first * roofline.dram()) - 14,
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
    svg += SvgText(px + 5, py + 3, fmt::format("{} {}", result.name, result.rows),
                   "font-size=\"8\" fill=\"#333\"");
  }
  return svg;
}

}  // namespace

std::string RooflineSvg(const Roofline& roofline, std::span<const BenchResult> results) {
  LogAxis x{.low = 0, .high = 3, .from = kFrame.left, .to = kFrame.width - kFrame.right};
  LogAxis y{.low = 1, .high = 2, .from = kFrame.height - kFrame.bottom, .to = kFrame.top};
  y.Widen(roofline.bf16());
  y.Widen(roofline.dram());
  for (const BenchResult& result : results) {
    if (result.gbytes <= 0 || result.gmacs <= 0) continue;
    x.Widen(result.gmacs / result.gbytes);
    y.Widen(result.gmacs);
  }
  std::string svg = SvgBegin(kFrame, fmt::format("{}, {}, {} threads", roofline.processor,
                                                 roofline.isa, roofline.dram_gbps.size()));
  svg += SvgGrid(x, y);
  svg += Roofs(roofline, x, y);
  svg += Points(results, x, y);
  svg += SvgText((x.from + x.to) / 2, kFrame.height - 16, "multiply-accumulates per byte of memory",
                 "text-anchor=\"middle\" fill=\"#111\"");
  svg += SvgSideText(18, (y.from + y.to) / 2, "GMAC/s", "fill=\"#111\"");
  return svg.append(kSvgEnd);
}

}  // namespace deepinfer
