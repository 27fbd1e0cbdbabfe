#include "bench/decode_schedule.h"

#include <string_view>

namespace deepinfer {
namespace {

// The layer map (model.md section 3).
constexpr int kLayers = 40;
constexpr int kNgramLayers = 2;
constexpr int kPooledSources = 3;  // layers 2, 8, 14: an entry for two tokens
constexpr int kReindexLayers = 4;  // layers 24, 28, 32, 36: inside 2,048 blocks of 8 entries
constexpr int kIndexLayers = kPooledSources + 1 + kReindexLayers;
// Products that are not measured by themselves, by their share of one that is.
constexpr double kWkvOfWqA = 512.0 / 1280;
constexpr double kIndexQueryOfWqB = 4096.0 / 32768;

class OneRow {
 public:
  explicit OneRow(std::span<const BenchResult> results) : results_(results) {}

  double operator()(std::string_view name) {
    for (const BenchResult& result : results_) {
      if (result.name == name && result.rows == 1) return result.ms;
    }
    complete_ = false;
    return 0;
  }
  bool complete() const { return complete_; }

 private:
  std::span<const BenchResult> results_;
  bool complete_ = true;
};

}  // namespace

std::optional<DecodeSchedule> ComputeDecodeSchedule(std::span<const BenchResult> results) {
  OneRow ms(results);
  const double attention = ms("linear_wq_a") * (1 + kWkvOfWqA) + ms("linear_wq_b") +
                           ms("attention") + ms("grouped_wo_a") + ms("linear_wo_b");
  const double experts = ms("gate") + ms("ffn_mxfp4") + ms("ffn_shared");
  const double fixed = kLayers * (attention + experts + 2 * ms("mhc")) +
                       kNgramLayers * ms("linear_engram") +
                       kIndexLayers * kIndexQueryOfWqB * ms("linear_wq_b") + ms("head");
  const double short_index = (kPooledSources * 0.5 + 1 + kReindexLayers) * ms("index_1k");
  const double long_index =
      (kPooledSources * 0.5 + 1) * ms("index_1m") + kReindexLayers * ms("index_16k");
  if (!ms.complete()) return std::nullopt;
  return DecodeSchedule{.ms_at_1k = fixed + short_index, .ms_at_1m = fixed + long_index};
}

}  // namespace deepinfer
