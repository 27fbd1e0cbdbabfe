#include "inspect/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "tensor/bf16.h"
#include "tensor/fp8.h"

namespace deepinfer {
namespace {

// Large enough for sequential reads, small enough for steady progress.  A multiple of every
// element.
constexpr size_t kPieceBytes = size_t{16} << 20;
constexpr size_t kPageBytes = 4096;
constexpr auto kTick = std::chrono::milliseconds(200);

struct Piece {
  std::string_view name;
  const StoredTensor* tensor;
  size_t begin;
  size_t end;
};

struct BadValues {
  int64_t first = -1;  // element of the tensor
  int64_t count = 0;
};

// Elements of type T for which is_bad holds.  The file promises no alignment.
template <typename T, typename IsBad>
BadValues Count(std::span<const std::byte> bytes, const IsBad& is_bad) {
  const auto load = [&](size_t i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  };
  const size_t count = bytes.size() / sizeof(T);
  BadValues bad;
  // Without an exit in between, so that it becomes vector code.
  for (size_t i = 0; i < count; ++i) bad.count += is_bad(load(i)) ? 1 : 0;
  for (size_t i = 0; bad.count > 0 && bad.first < 0; ++i) {
    if (is_bad(load(i))) bad.first = static_cast<int64_t>(i);
  }
  return bad;
}

BadValues TouchPages(std::span<const std::byte> bytes) {
  uint8_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += kPageBytes) sum ^= static_cast<uint8_t>(bytes[i]);
  // The value is of no interest, but the reads must not be optimised away.
  [[maybe_unused]] volatile uint8_t sink = sum;
  return {};
}

BadValues CountBad(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kF8E8M0:
      return Count<uint8_t>(bytes,
                            [](uint8_t b) { return b < kMinScaleByte || b > kMaxScaleByte; });
    case DType::kF8E4M3:
      return Count<uint8_t>(bytes, [](uint8_t b) { return (b & 0x7F) == 0x7F; });
    case DType::kBf16:
      return Count<uint16_t>(bytes, [](uint16_t v) { return (v & 0x7F80) == 0x7F80; });
    case DType::kF32:
      return Count<uint32_t>(bytes, [](uint32_t v) { return (v & 0x7F800000) == 0x7F800000; });
    default:
      return TouchPages(bytes);
  }
}

std::string DescribeBad(const StoredTensor& tensor, int64_t element) {
  const std::byte* data = tensor.view.bytes.data();
  const auto code = static_cast<int>(data[static_cast<size_t>(element)]);  // of one-byte types
  switch (tensor.view.dtype) {
    case DType::kF8E8M0:
      return fmt::format("scale byte {} at element {}", code, element);
    case DType::kF8E4M3:
      return fmt::format("NaN code 0x{:02X} at element {}", code, element);
    case DType::kBf16: {
      uint16_t value = 0;
      std::memcpy(&value, data + element * 2, sizeof value);
      return fmt::format("{} at element {}", Bf16ToFloat(value), element);
    }
    default: {
      float value = 0;
      std::memcpy(&value, data + element * 4, sizeof value);
      return fmt::format("{} at element {}", value, element);
    }
  }
}

std::string Expectation(DType dtype) {
  return dtype == DType::kF8E8M0 ? fmt::format("{} to {}", kMinScaleByte, kMaxScaleByte)
                                 : "finite values";
}

std::vector<Piece> CutIntoPieces(const Checkpoint& checkpoint) {
  std::vector<Piece> pieces;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    for (size_t begin = 0; begin < tensor.view.bytes.size(); begin += kPieceBytes) {
      pieces.push_back({.name = name,
                        .tensor = &tensor,
                        .begin = begin,
                        .end = std::min(begin + kPieceBytes, tensor.view.bytes.size())});
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.tensor->file, a.tensor->view.bytes.data()) <
           std::pair(b.tensor->file, b.tensor->view.bytes.data());
  });
  return pieces;
}

// Threads take pieces until none is left; the caller's thread watches.
class Scanner {
 public:
  explicit Scanner(const Checkpoint& checkpoint) : pieces_(CutIntoPieces(checkpoint)) {
    for (const Piece& piece : pieces_)
      total_bytes_ += static_cast<int64_t>(piece.end - piece.begin);
  }

  int64_t total_bytes() const { return total_bytes_; }

  Status Run(const ScanOptions& options) {
    running_ = std::max(1, options.threads);
    std::vector<std::jthread> threads;
    for (int i = running_; i > 0; --i) threads.emplace_back([this] { Work(); });
    return Watch(options);
  }

  // After Run.
  std::vector<ScanProblem> Problems() const {
    std::vector<ScanProblem> problems;
    for (const auto& [name, bad] : bad_) {
      problems.push_back({.file = bad.tensor->file->path().string(),
                          .tensor = std::string(name),
                          .found = DescribeBad(*bad.tensor, bad.values.first),
                          .expected = Expectation(bad.tensor->view.dtype),
                          .count = bad.values.count});
    }
    return problems;
  }

 private:
  struct BadTensor {
    const StoredTensor* tensor = nullptr;
    BadValues values;
  };

  void Work() {
    for (;;) {
      const size_t at = next_.fetch_add(1);
      if (at >= pieces_.size() || stop_.load()) break;
      const Piece& piece = pieces_[at];
      const TensorView& view = piece.tensor->view;
      const BadValues bad =
          CountBad(view.dtype, view.bytes.subspan(piece.begin, piece.end - piece.begin));
      if (bad.count > 0) Note(piece, bad);
      done_bytes_ += static_cast<int64_t>(piece.end - piece.begin);
    }
    const std::lock_guard lock(mutex_);
    --running_;
    finished_.notify_one();
  }

  void Note(const Piece& piece, const BadValues& found) {
    const int64_t first =
        static_cast<int64_t>(piece.begin) / InfoOf(piece.tensor->view.dtype).bytes + found.first;
    const std::lock_guard lock(mutex_);
    BadTensor& bad = bad_[piece.name];
    const bool earlier = bad.values.count == 0 || first < bad.values.first;
    bad.tensor = piece.tensor;
    bad.values.count += found.count;
    if (earlier) bad.values.first = first;
  }

  Status Watch(const ScanOptions& options) {
    std::unique_lock lock(mutex_);
    while (!finished_.wait_for(lock, kTick, [this] { return running_ == 0; })) {
      lock.unlock();
      if (options.on_progress) options.on_progress(done_bytes_.load(), total_bytes_);
      if (options.should_stop && options.should_stop()) stop_.store(true);
      lock.lock();
    }
    if (stop_.load()) return Cancelled("stopped before everything was read");
    if (options.on_progress) options.on_progress(total_bytes_, total_bytes_);
    return Status::Ok();
  }

  const std::vector<Piece> pieces_;
  int64_t total_bytes_ = 0;

  std::atomic<size_t> next_{0};
  std::atomic<int64_t> done_bytes_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;
  std::condition_variable finished_;
  int running_ = 0;                            // guarded by mutex_ once threads run
  std::map<std::string_view, BadTensor> bad_;  // guarded by mutex_
};

}  // namespace

Result<ScanReport> ScanCheckpoint(const Checkpoint& checkpoint, const ScanOptions& options) {
  Scanner scanner(checkpoint);
  RETURN_IF_ERROR(scanner.Run(options));
  return ScanReport{.files = static_cast<int64_t>(checkpoint.files().size()),
                    .tensors = static_cast<int64_t>(checkpoint.tensors().size()),
                    .bytes = scanner.total_bytes(),
                    .problems = scanner.Problems()};
}

}  // namespace deepinfer
