#include "bench/roofline.h"

#include <algorithm>
#include <atomic>

#include "base/machine.h"
#include "base/pages.h"
#include "bench/measure.h"
#include "kernels/kernels.h"
#include "kernels/peaks.h"

namespace deepinfer {
namespace {

constexpr size_t kDramBytes = size_t{1} << 30;  // far beyond the caches of the largest machines
constexpr size_t kL3Bytes = size_t{8} << 20;    // a thread
constexpr size_t kL2Bytes = size_t{512} << 10;  // a thread
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr int64_t kRounds = 1 << 17;

// Memory that the system has really given.
PageBuffer TouchedBuffer(size_t bytes) {
  PageBuffer buffer(bytes);
  for (size_t at = 0; at < bytes; at += 4096) buffer.data()[at] = std::byte{1};
  return buffer;
}

// Multiply-accumulates a second of `threads` threads.
double DotRate(ExecContext& context, int threads, int64_t (*dots)(int64_t rounds)) {
  std::atomic<int64_t> done{0};
  const Timing timing = Measure([&] {
    done = 0;
    context.ParallelFor(threads, 1, [&](int64_t, int64_t) { done += dots(kRounds); });
  });
  return static_cast<double>(done.load()) / timing.median / 1e9;
}

// Bytes a second; every thread reads its own piece of `piece` bytes `times` times.
double CachedReadRate(ExecContext& context, int threads, const PageBuffer& buffer, size_t piece) {
  const PeakLoops loops = PeakLoopsOf(context.kernels().name);
  constexpr int kTimes = 16;
  const Timing timing = Measure([&] {
    context.ParallelFor(threads, 1, [&](int64_t begin, int64_t) {
      const std::byte* data = buffer.data() + static_cast<size_t>(begin) * piece;
      for (int i = 0; i < kTimes; ++i) loops.read(data, piece);
    });
  });
  return static_cast<double>(piece) * kTimes * threads / timing.median / 1e9;
}

double DramReadRate(ExecContext& context, int threads, const PageBuffer& buffer) {
  const PeakLoops loops = PeakLoopsOf(context.kernels().name);
  const size_t share = buffer.size() / static_cast<size_t>(threads) / kPieceBytes * kPieceBytes;
  const Timing timing = Measure(
      [&] {
        context.ParallelFor(threads, 1, [&](int64_t begin, int64_t) {
          loops.read(buffer.data() + static_cast<size_t>(begin) * share, share);
        });
      },
      {.seconds = 0.5, .least = 5});
  return static_cast<double>(share) * threads / timing.median / 1e9;
}

}  // namespace

Roofline MeasureRoofline(ExecContext& context) {
  const PeakLoops loops = PeakLoopsOf(context.kernels().name);
  const PageBuffer buffer =
      TouchedBuffer(std::max(kDramBytes, kL3Bytes * static_cast<size_t>(context.num_threads())));
  Roofline roofline{.processor = ProcessorName(), .isa = context.kernels().name};
  for (int threads = 1; threads <= context.num_threads(); ++threads) {
    roofline.dram_gbps.push_back(DramReadRate(context, threads, buffer));
    roofline.l3_gbps.push_back(CachedReadRate(context, threads, buffer, kL3Bytes));
    roofline.l2_gbps.push_back(CachedReadRate(context, threads, buffer, kL2Bytes));
    roofline.bf16_gmacs.push_back(DotRate(context, threads, loops.bf16_dots));
    roofline.int8_gmacs.push_back(DotRate(context, threads, loops.int8_dots));
  }
  return roofline;
}

double MeasureDram(ExecContext& context) {
  static const PageBuffer buffer = TouchedBuffer(kDramBytes);
  return DramReadRate(context, context.num_threads(), buffer);
}

}  // namespace deepinfer
