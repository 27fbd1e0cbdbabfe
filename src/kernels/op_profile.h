// Where the time of a step goes: seconds, calls and weight bytes by op, as the step thread sees
// them.  Switched on by giving one to an ExecContext; without one an op pays a null check.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace deepinfer {

enum class Op : uint8_t {
  kPack,
  kMatmulFp8,
  kMatmulFp4,
  kMatmulBf16,
  kMatmulF32,
  kEmbed,
  kRmsNorm,
  kHcMixes,
  kHcPre,
  kHcPost,
  kMeanStreams,
  kRope,
  kStoreRows,
  kPoolGroups,
  kIndexSelect,
  kAttention,
  kRoute,
  kSwiglu,
  kAddRows,
  kScale,
  kDecodeRows,
  kNgramGate,
  kCount,
};

std::string_view OpName(Op op);

// Not thread-safe: the step thread writes it.
class OpProfile {
 public:
  struct Entry {
    double seconds = 0;
    int64_t calls = 0;
    int64_t weight_bytes = 0;  // of matrix products, each weight byte once a call
    int64_t macs = 0;          // multiply-accumulates of matrix products
  };

  const Entry& of(Op op) const { return entries_[static_cast<size_t>(op)]; }
  Entry& of(Op op) { return entries_[static_cast<size_t>(op)]; }
  double TotalSeconds() const {
    double total = 0;
    for (const Entry& entry : entries_) total += entry.seconds;
    return total;
  }

 private:
  std::array<Entry, static_cast<size_t>(Op::kCount)> entries_;
};

// Adds the time it lives to an op; does nothing without a profile.
class OpTimer {
 public:
  OpTimer(OpProfile* profile, Op op) : entry_(profile != nullptr ? &profile->of(op) : nullptr) {
    if (entry_ != nullptr) start_ = Clock::now();
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;
  ~OpTimer() {
    if (entry_ == nullptr) return;
    entry_->seconds += std::chrono::duration<double>(Clock::now() - start_).count();
    ++entry_->calls;
  }

 private:
  using Clock = std::chrono::steady_clock;
  OpProfile::Entry* entry_;
  Clock::time_point start_;
};

}  // namespace deepinfer
