// The limits of this machine, measured: what every other measurement is held against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/file.h"
#include "kernels/exec_context.h"

namespace deepinfer {

// Rates by number of threads: element i is of i + 1 threads.
struct Roofline {
  std::string processor;  // as the kernel names it
  std::string isa;
  std::vector<double> dram_gbps;   // reads of memory beyond every cache
  std::vector<double> l3_gbps;     // of 8 MiB a thread
  std::vector<double> l2_gbps;     // of 512 KiB a thread
  std::vector<double> bf16_gmacs;  // dots of bf16 pairs accumulated in fp32
  std::vector<double> int8_gmacs;  // dots of bytes accumulated in 32 bits

  // Of all threads.
  double dram() const { return dram_gbps.back(); }
  double bf16() const { return bf16_gmacs.back(); }
  double int8() const { return int8_gmacs.back(); }
};

// Measures for about two seconds a thread count.
Roofline MeasureRoofline(ExecContext& context);

// Memory bandwidth of all threads alone: it wanders on a shared machine, so that a long series of
// measurements looks at it again and again.
double MeasureDram(ExecContext& context);

struct DiskRate {
  std::string pattern;  // "sequential 1 MiB" or "random 4 KiB"
  int depth;            // reads in flight
  double gbps;
  double iops;
};

// Direct reads (past the page cache) of a file of 1 GiB that is made in `dir` and removed again.
// IoError where the directory or its file system does not allow it.
Result<std::vector<DiskRate>> MeasureDisk(const Path& dir);

}  // namespace deepinfer
