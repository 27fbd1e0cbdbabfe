// Byte-pair encoding of one piece: the pair with the lowest rank merges first, the leftmost of
// equals.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace deepinfer {

// (left id, right id) -> rank and merged id, in one flat open-addressing table.  Immutable once
// built.
class MergeTable {
 public:
  struct Merge {
    int32_t rank = -1;  // -1: the pair does not merge
    int32_t id = -1;
  };

  explicit MergeTable(size_t count);
  // Keeps the first rank of a pair that is given twice.
  void Insert(int32_t left, int32_t right, Merge merge);
  Merge Find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  size_t SlotOf(uint64_t key) const;

  std::vector<Slot> slots_;  // a power of two, at most half full
};

// Merges the bytes of `piece`, spelled by byte_ids, and appends the resulting ids.
// Time O(n log n), so that a long run of one character does no harm.
void EncodePiece(std::string_view piece, const std::array<int32_t, 256>& byte_ids,
                 const MergeTable& merges, std::vector<int32_t>& out);

}  // namespace deepinfer
