// Rotary position factors (model.md section 4).  Computed in fp64 by common code, so that they do
// not depend on the instruction set.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace deepinfer {

struct YarnScaling {
  double factor;
  double beta_fast;
  double beta_slow;
  int64_t original_positions;
};

// Immutable; thread-safe.
class RopeTable {
 public:
  RopeTable(int rope_dim, double base, const std::optional<YarnScaling>& yarn = std::nullopt);

  int64_t num_pairs() const { return static_cast<int64_t>(inv_freq_.size()); }
  const std::vector<float>& inv_freq() const { return inv_freq_; }

  // cos, sin: [positions, num_pairs]; angle = fp32(pos * inv_freq).
  void Fill(std::span<const int64_t> positions, float* cos, float* sin) const;

 private:
  std::vector<float> inv_freq_;  // [rope_dim/2]
};

}  // namespace deepinfer
