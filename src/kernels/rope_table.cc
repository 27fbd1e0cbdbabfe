#include "kernels/rope_table.h"

#include <algorithm>
#include <cmath>

#include "kernels/math64.h"

namespace deepinfer {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;

// Channel pair at which a rotation of `turns` full circles over the original context falls.
double PairOfTurns(double turns, int rope_dim, double base, const YarnScaling& yarn) {
  return rope_dim * LogF64(static_cast<double>(yarn.original_positions) / (turns * 2 * kPi)) /
         (2 * LogF64(base));
}

// Fast pairs keep their frequency, slow ones are divided by the factor, a ramp lies between.
void ApplyYarn(const YarnScaling& yarn, int rope_dim, double base, std::vector<float>& inv_freq) {
  const double low = std::max(std::floor(PairOfTurns(yarn.beta_fast, rope_dim, base, yarn)), 0.0);
  const double high = std::min(std::ceil(PairOfTurns(yarn.beta_slow, rope_dim, base, yarn)),
                               static_cast<double>(rope_dim - 1));
  const auto width = static_cast<float>(std::max(high - low, 1e-3));
  for (size_t k = 0; k < inv_freq.size(); ++k) {
    const float at = (static_cast<float>(k) - static_cast<float>(low)) / width;
    const float keep = 1.0f - std::clamp(at, 0.0f, 1.0f);
    const float slow = inv_freq[k] / static_cast<float>(yarn.factor);
    inv_freq[k] = slow * (1.0f - keep) + inv_freq[k] * keep;
  }
}

}  // namespace

RopeTable::RopeTable(int rope_dim, double base, const std::optional<YarnScaling>& yarn)
    : inv_freq_(static_cast<size_t>(rope_dim / 2)) {
  for (size_t k = 0; k < inv_freq_.size(); ++k) {
    const float exponent = 2.0f * static_cast<float>(k) / static_cast<float>(rope_dim);
    inv_freq_[k] = 1.0f / static_cast<float>(PowF64(base, static_cast<double>(exponent)));
  }
  if (yarn) ApplyYarn(*yarn, rope_dim, base, inv_freq_);
}

void RopeTable::Fill(std::span<const int64_t> positions, float* cos, float* sin) const {
  for (const int64_t pos : positions) {
    for (const float inv : inv_freq_) {
      const SinCos value = SinCosF64(static_cast<double>(static_cast<float>(pos) * inv));
      *cos++ = static_cast<float>(value.cos);
      *sin++ = static_cast<float>(value.sin);
    }
  }
}

}  // namespace deepinfer
