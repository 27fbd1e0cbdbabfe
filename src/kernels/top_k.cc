#include "kernels/top_k.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

namespace deepinfer {
namespace {

// Entries that are collected beyond those kept before the next pruning, in times of those kept.
// More make rising scores cheaper and short lists dearer.
constexpr int64_t kSlack = 2;
constexpr int64_t kMinSlack = 256;
// Scores rise where more than one in kRising is collected.  Then it pays to look ahead at samples
// of those to come, in times of the entries kept: the floor that they give passes over all but a
// quarter of scores in ascending order.
constexpr int64_t kRising = 4;
constexpr int64_t kSamples = 4;

float ScoreOf(uint64_t key) {
  const auto ascending = static_cast<uint32_t>(~(key >> 32));
  const uint32_t bits = (ascending & 0x80000000) != 0 ? ascending & 0x7FFFFFFF : ~ascending;
  return std::bit_cast<float>(bits);
}

// A number below x, so that an entry that equals x, sampled or not, is above it: the next one, but
// none that counts as zero.  x: not -inf.
float Below(float x) {
  constexpr float kTiny = std::numeric_limits<float>::min();
  if (x > -kTiny && x < kTiny) return -kTiny;
  if (x == kTiny) return 0;
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>(x > 0 ? bits - 1 : bits + 1);
}

}  // namespace

TopK::TopK() = default;

TopK::~TopK() = default;

void TopK::Start(int64_t keep, const float* scores, int64_t count) {
  keep_ = keep;
  capacity_ = keep + std::max(kSlack * keep, kMinSlack);
  const auto keys = static_cast<size_t>(capacity_);
  const auto samples = static_cast<size_t>(kSamples * keep);
  keys_ = static_cast<uint64_t*>(memory_.Get(keys * sizeof(uint64_t) + samples * sizeof(float)));
  samples_ = reinterpret_cast<float*>(keys_ + keys);
  scores_ = scores;
  num_scores_ = count;
  seen_ = 0;
  count_ = 0;
  floor_ = -std::numeric_limits<float>::infinity();
}

void TopK::Prune() {
  std::nth_element(keys_, keys_ + keep_ - 1, keys_ + count_);
  count_ = keep_;
  floor_ = std::max(floor_, ScoreOf(keys_[keep_ - 1]));
}

void TopK::MakeRoom() {
  const int64_t next = IndexOf(keys_[count_ - 1]) + 1;
  Prune();
  // The first ones are collected whatever their order.
  if (seen_ > 0 && next - seen_ < kRising * (capacity_ - keep_)) RaiseFloor(next);
  seen_ = next;
}

// The worst of the `keep` best samples is no better than the worst of the `keep` best scores.
void TopK::RaiseFloor(int64_t next) {
  const int64_t samples = kSamples * keep_;
  const int64_t step = (num_scores_ - next) / samples;
  if (step < 2) return;  // little is left
  for (int64_t i = 0; i < samples; ++i) samples_[i] = scores_[next + i * step];
  std::nth_element(samples_, samples_ + keep_ - 1, samples_ + samples, std::greater<float>());
  const float worst = samples_[keep_ - 1];
  if (worst > floor_) floor_ = std::max(floor_, Below(worst));
}

TopK::Best TopK::Finish() {
  if (count_ >= keep_) Prune();
  return {.keys = keys_, .count = count_};
}

void SortIndices(const uint64_t* keys, int64_t count, int32_t* indices) {
  for (int64_t i = 0; i < count; ++i) indices[i] = IndexOf(keys[i]);
  std::sort(indices, indices + count);
}

}  // namespace deepinfer
