#include "kernels/top_k.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace deepinfer {
namespace {

// Entries that are collected beyond those kept before the next pruning, in times of those kept.
// More make scores in ascending order cheaper and short lists dearer.
constexpr int64_t kSlack = 2;
constexpr int64_t kMinSlack = 256;

float ScoreOf(uint64_t key) {
  const auto ascending = static_cast<uint32_t>(~(key >> 32));
  const uint32_t bits = (ascending & 0x80000000) != 0 ? ascending & 0x7FFFFFFF : ~ascending;
  return std::bit_cast<float>(bits);
}

}  // namespace

TopK::TopK() = default;

TopK::~TopK() = default;

void TopK::Start(int64_t keep) {
  keep_ = keep;
  capacity_ = keep + std::max(kSlack * keep, kMinSlack);
  keys_ = static_cast<uint64_t*>(memory_.Get(static_cast<size_t>(capacity_) * sizeof(uint64_t)));
  count_ = 0;
  floor_ = -std::numeric_limits<float>::infinity();
}

void TopK::Prune() {
  std::nth_element(keys_, keys_ + keep_ - 1, keys_ + count_);
  count_ = keep_;
  floor_ = ScoreOf(keys_[keep_ - 1]);
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
