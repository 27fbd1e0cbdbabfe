// Where rows of the n-gram tables come from: 264 bytes each at the released dimensions, scattered
// over a hundred gigabytes, and known from token ids before any layer runs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "weights/checkpoint.h"

namespace deepinfer {

// Thread-compatible: one step at a time asks.
class NgramSource {
 public:
  virtual ~NgramSource() = default;

  // Says that these rows of a table will be fetched soon; never fails, never waits.
  virtual void Prefetch(int table, std::span<const int64_t> rows) = 0;

  // Copies rows to codes [rows, dim] (e4m3) and scales [rows, dim/32] (e8m0).  CorruptData for a
  // scale byte outside 41..200.
  virtual Status Fetch(int table, std::span<const int64_t> rows, uint8_t* codes,
                       uint8_t* scales) = 0;
};

// Tables in place in a mapped checkpoint, which must outlive the source; layers: the n-gram layers,
// in table order.  Precondition: the checkpoint was validated.
std::unique_ptr<NgramSource> MapNgramTables(const Checkpoint& checkpoint,
                                            std::span<const int> layers);

}  // namespace deepinfer
