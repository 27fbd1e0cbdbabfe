#include "model/pcg64.h"

#include <array>
#include <bit>
#include <cstddef>
#include <utility>

namespace deepinfer {
namespace {

constexpr uint32_t kPoolSize = 4;
constexpr uint32_t kShift = 16;

// Hash with a running constant, as SeedSequence mixes entropy words.
class RunningHash {
 public:
  RunningHash(uint32_t initial, uint32_t multiplier)
      : constant_(initial), multiplier_(multiplier) {}

  uint32_t operator()(uint32_t value) {
    value ^= constant_;
    constant_ *= multiplier_;
    value *= constant_;
    return value ^ value >> kShift;
  }

 private:
  uint32_t constant_;
  uint32_t multiplier_;
};

uint32_t Mix(uint32_t x, uint32_t y) {
  const uint32_t mixed = 0xca01f9ddu * x - 0x4973f715u * y;
  return mixed ^ mixed >> kShift;
}

// SeedSequence(seed).generate_state(4, uint64)
std::array<uint64_t, 4> SeedState(uint64_t seed) {
  RunningHash hash(0x43b0d7e5u, 0x931e8875u);
  std::array<uint32_t, kPoolSize> pool{};
  const std::array<uint32_t, 2> entropy = {static_cast<uint32_t>(seed),
                                           static_cast<uint32_t>(seed >> 32)};
  for (std::size_t i = 0; i < kPoolSize; ++i) pool[i] = hash(i < entropy.size() ? entropy[i] : 0);
  for (std::size_t source = 0; source < kPoolSize; ++source) {
    for (std::size_t target = 0; target < kPoolSize; ++target) {
      if (source != target) pool[target] = Mix(pool[target], hash(pool[source]));
    }
  }
  RunningHash generate(0x8b51f9ddu, 0x58f38dedu);
  std::array<uint64_t, 4> state{};
  for (std::size_t i = 0; i < 8; ++i) {
    state[i / 2] |= uint64_t{generate(pool[i % kPoolSize])} << (i % 2 * 32);
  }
  return state;
}

}  // namespace

Pcg64::Pcg64(uint64_t seed) {
  const std::array<uint64_t, 4> words = SeedState(seed);
  const Uint128 initial = static_cast<Uint128>(words[0]) << 64 | words[1];
  const Uint128 sequence = static_cast<Uint128>(words[2]) << 64 | words[3];
  increment_ = sequence << 1 | 1;
  Step();
  state_ += initial;
  Step();
}

void Pcg64::Step() {
  const Uint128 multiplier =
      static_cast<Uint128>(2549297995355413924ull) << 64 | 4865540595714422341ull;
  state_ = state_ * multiplier + increment_;
}

uint64_t Pcg64::Next64() {
  Step();
  const auto high = static_cast<uint64_t>(state_ >> 64);
  const auto low = static_cast<uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(high >> 58));
}

uint32_t Pcg64::Next32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const uint64_t word = Next64();
  has_half_ = true;
  half_ = static_cast<uint32_t>(word >> 32);
  return static_cast<uint32_t>(word);
}

// Lemire's method: the upper half of a widening product, with the few biased draws rejected.
uint64_t Pcg64::Below(uint64_t bound) {
  if (bound == 1) return 0;
  if (bound <= uint64_t{1} << 32) {
    if (bound == uint64_t{1} << 32) return Next32();
    uint64_t product = uint64_t{Next32()} * bound;
    const uint64_t threshold = (uint64_t{1} << 32) % bound;
    while ((product & 0xFFFFFFFF) < threshold) product = uint64_t{Next32()} * bound;
    return product >> 32;
  }
  Uint128 product = static_cast<Uint128>(Next64()) * bound;
  const uint64_t threshold = (0 - bound) % bound;
  while (static_cast<uint64_t>(product) < threshold) {
    product = static_cast<Uint128>(Next64()) * bound;
  }
  return static_cast<uint64_t>(product >> 64);
}

}  // namespace deepinfer
