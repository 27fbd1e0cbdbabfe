#include "bench/render.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

std::string RateLine(std::string_view name, std::string_view unit,
                     const std::vector<double>& by_threads) {
  std::string line = fmt::format("{:<14}", name);
  for (const double rate : by_threads) line += fmt::format("{:>10.1f}", rate);
  return line + fmt::format("  {}\n", unit);
}

Json RooflineJson(const Roofline& roofline) {
  return {{"processor", roofline.processor},      {"isa", roofline.isa},
          {"threads", roofline.dram_gbps.size()}, {"dram_gbps", roofline.dram_gbps},
          {"l3_gbps", roofline.l3_gbps},          {"l2_gbps", roofline.l2_gbps},
          {"bf16_gmacs", roofline.bf16_gmacs},    {"int8_gmacs", roofline.int8_gmacs}};
}

Json OpsJson(const StepResult& result) {
  Json ops = Json::array();
  for (int i = 0; i < static_cast<int>(Op::kCount); ++i) {
    const auto op = static_cast<Op>(i);
    const OpProfile::Entry& entry = result.profile.of(op);
    if (entry.calls == 0) continue;
    ops.push_back({{"op", OpName(op)},
                   {"ms", 1e3 * entry.seconds / result.steps},
                   {"calls", entry.calls / result.steps},
                   {"share", entry.seconds / result.profile.TotalSeconds()}});
  }
  return ops;
}

}  // namespace

std::string RooflineText(const Roofline& roofline) {
  std::string text = fmt::format("{}, {}\n{:<14}", roofline.processor, roofline.isa, "threads");
  for (size_t i = 1; i <= roofline.dram_gbps.size(); ++i) text += fmt::format("{:>10}", i);
  text += "\n";
  text += RateLine("memory read", "GB/s", roofline.dram_gbps);
  text += RateLine("L3 read", "GB/s", roofline.l3_gbps);
  text += RateLine("L2 read", "GB/s", roofline.l2_gbps);
  text += RateLine("bf16 dots", "GMAC/s", roofline.bf16_gmacs);
  text += RateLine("int8 dots", "GMAC/s", roofline.int8_gmacs);
  return text;
}

std::string DiskText(std::span<const DiskRate> rates) {
  std::string text =
      fmt::format("{:<18}{:>6}{:>10}{:>12}\n", "direct disk read", "depth", "GB/s", "reads/s");
  for (const DiskRate& rate : rates) {
    text += fmt::format("{:<18}{:>6}{:>10.2f}{:>12.0f}\n", rate.pattern, rate.depth, rate.gbps,
                        rate.iops);
  }
  return text;
}

std::string MachineJson(const Roofline& roofline, std::span<const DiskRate> disk) {
  Json reads = Json::array();
  for (const DiskRate& rate : disk) {
    reads.push_back({{"pattern", rate.pattern},
                     {"depth", rate.depth},
                     {"gbps", rate.gbps},
                     {"iops", rate.iops}});
  }
  return Json{{"machine", RooflineJson(roofline)}, {"disk", std::move(reads)}}.dump(2) + "\n";
}

std::string KernelTableHeader() {
  return fmt::format("{:<14}{:>6}{:>11}{:>10}{:>10}  {:<5}{:>9}\n", "op", "rows", "ms", "GMAC/s",
                     "GB/s", "limit", "% of it");
}

std::string KernelTableLine(const BenchResult& result) {
  return fmt::format("{:<14}{:>6}{:>11.3f}{:>10.1f}{:>10.1f}  {:<5}{:>9.1f}\n", result.name,
                     result.rows, result.ms, result.gmacs, result.gbytes, result.limit,
                     result.percent_of_limit);
}

std::string KernelsJson(const Roofline& roofline, std::span<const BenchResult> results) {
  Json list = Json::array();
  for (const BenchResult& result : results) {
    list.push_back({{"name", result.name},
                    {"rows", result.rows},
                    {"ms", result.ms},
                    {"gmacs", result.gmacs},
                    {"gbytes", result.gbytes},
                    {"limit", result.limit},
                    {"percent_of_limit", result.percent_of_limit}});
  }
  return Json{{"machine", RooflineJson(roofline)}, {"results", std::move(list)}}.dump(2) + "\n";
}

std::string DecodeScheduleLine(const DecodeSchedule& schedule) {
  return fmt::format(
      "40 layers put together: {:.0f} ms a token ({:.2f} tok/s) at 1k context, {:.0f} ms ({:.2f}) "
      "at 1M: {:.2f} times\n",
      schedule.ms_at_1k, 1e3 / schedule.ms_at_1k, schedule.ms_at_1m, 1e3 / schedule.ms_at_1m,
      schedule.ms_at_1m / schedule.ms_at_1k);
}

std::string StepTableHeader() {
  return fmt::format("{:<9}{:>5}{:>9}{:>6}{:>11}{:>10}{:>9}{:>8}  {:<5}{:>8}\n", "step", "seqs",
                     "context", "rows", "ms", "tok/s", "GMAC/s", "GB/s", "limit", "% of it");
}

std::string StepTableLines(const StepResult& result) {
  return fmt::format(
      "{:<9}{:>5}{:>9}{:>6}{:>11.2f}{:>10.1f}{:>9.1f}{:>8.1f}  {:<5}{:>8.1f}\n    {}\n",
      result.name, result.sequences, result.context, result.rows, result.ms,
      result.tokens_per_second, result.gmacs, result.gbytes, result.limit, result.percent_of_limit,
      OpShares(result.profile));
}

std::string StepsJson(const Roofline& roofline, std::span<const StepResult> results) {
  Json list = Json::array();
  for (const StepResult& result : results) {
    list.push_back({{"name", result.name},
                    {"sequences", result.sequences},
                    {"context", result.context},
                    {"rows", result.rows},
                    {"ms", result.ms},
                    {"tokens_per_second", result.tokens_per_second},
                    {"gmacs", result.gmacs},
                    {"gbytes", result.gbytes},
                    {"limit", result.limit},
                    {"percent_of_limit", result.percent_of_limit},
                    {"ops", OpsJson(result)}});
  }
  return Json{{"machine", RooflineJson(roofline)}, {"results", std::move(list)}}.dump(2) + "\n";
}

}  // namespace deepinfer
