// Where routed experts come from.  The model asks for the experts that a step chose and holds
// leases while it computes; a mapped checkpoint is the first source, a memory tier over disk or
// other ranks can stand behind the same call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "weights/checkpoint.h"

namespace deepinfer {

// A packed FP4 matrix [n, k] as stored (model.md section 2.1).
struct Fp4MatrixView {
  const uint8_t* codes = nullptr;   // [n, k/2], low nibble = even column
  const uint8_t* scales = nullptr;  // [n, k/32] e8m0
};

// The three matrices of one expert, usable until the lease is gone.  Move-only.
class ExpertLease {
 public:
  ExpertLease(Fp4MatrixView w1, Fp4MatrixView w3, Fp4MatrixView w2) : w1_(w1), w3_(w3), w2_(w2) {}
  ExpertLease(ExpertLease&&) = default;
  ExpertLease& operator=(ExpertLease&&) = default;

  const Fp4MatrixView& w1() const { return w1_; }  // gate [moe_intermediate_size, hidden]
  const Fp4MatrixView& w3() const { return w3_; }  // up   [moe_intermediate_size, hidden]
  const Fp4MatrixView& w2() const { return w2_; }  // down [hidden, moe_intermediate_size]

 private:
  Fp4MatrixView w1_, w3_, w2_;
};

// Thread-compatible: one step at a time asks.
class ExpertSource {
 public:
  virtual ~ExpertSource() = default;

  // Leases for the experts `ids` (ascending) of a layer, in the same order, appended to `leases`.
  // Draft block k is layer num_layers + k.  The vector's capacity is reused from step to step.
  // CorruptData when a scale byte of one of them is outside 41..200.
  virtual Status Acquire(int layer, std::span<const int32_t> ids,
                         std::vector<ExpertLease>& leases) = 0;
};

struct ExpertLayout {
  int num_layers = 0;
  int num_experts = 0;
  int num_draft_blocks = 0;
  int num_draft_experts = 0;
};

// Experts in place in a mapped checkpoint, which must outlive the source.
// Precondition: the checkpoint was validated.
std::unique_ptr<ExpertSource> MapExperts(const Checkpoint& checkpoint, const ExpertLayout& layout);

}  // namespace deepinfer
