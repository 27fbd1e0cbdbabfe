// Measurements as text, JSON and a roofline plot.
#pragma once

#include <span>
#include <string>

#include "bench/decode_schedule.h"
#include "bench/kernel_bench.h"
#include "bench/model_bench.h"
#include "bench/roofline.h"

namespace deepinfer {

// Several lines, each ended.
std::string RooflineText(const Roofline& roofline);
std::string DiskText(std::span<const DiskRate> rates);
std::string MachineJson(const Roofline& roofline, std::span<const DiskRate> disk);

std::string KernelTableHeader();
std::string KernelTableLine(const BenchResult& result);
// {machine, results: [{name, rows, ms, gmacs, gbytes, limit, percent_of_limit}]}
std::string KernelsJson(const Roofline& roofline, std::span<const BenchResult> results);

// One line; for a schedule that could be computed.
std::string DecodeScheduleLine(const DecodeSchedule& schedule);

std::string StepTableHeader();
// The figures of a step, and its ops below them.
std::string StepTableLines(const StepResult& result);
std::string StepsJson(const Roofline& roofline, std::span<const StepResult> results);

// Log-log plot of multiply-accumulates a second over multiply-accumulates per byte, under the roofs
// of memory and of the bf16 units; one named point per result.
std::string RooflineSvg(const Roofline& roofline, std::span<const BenchResult> results);

}  // namespace deepinfer
