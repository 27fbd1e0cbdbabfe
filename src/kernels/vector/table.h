// The kernels of an instruction set whose lanes are V: every op of kernels/vector.  Only included
// by the table.cc of each set, which adds what has a form of its own.
#pragma once

#include "kernels/kernels.h"
#include "kernels/vector/hyper_connection.h"
#include "kernels/vector/index_scores.h"
#include "kernels/vector/moe.h"
#include "kernels/vector/norm.h"
#include "kernels/vector/rows.h"
#include "kernels/vector/selection.h"

namespace deepinfer::vector {

// pack, matmul and attention are left null.
template <class V>
KernelTable TableOf(const char* name) {
  return {
      .name = name,
      .pack = nullptr,
      .matmul = nullptr,
      .embed = Embed<V>,
      .rms_norm = RmsNorm<V>,
      .hc_mixes = HcMixes<V>,
      .hc_pre = HcPre<V>,
      .hc_post = HcPost<V>,
      .mean_streams = MeanStreams<V>,
      .rope = Rope<V>,
      .store_rows = StoreRows<V>,
      .pool_groups = PoolGroups<V>,
      .index_scores = IndexScores<V>,
      .candidate_blocks = CandidateBlocks<V>,
      .select_top_k = SelectTopK<V>,
      .attention = nullptr,
      .route = Route<V>,
      .swiglu = Swiglu<V>,
      .add_rows = AddRows<V>,
      .scale = Scale<V>,
      .decode_fp8_rows = DecodeFp8Rows<V>,
      .ngram_gate = NgramGate<V>,
  };
}

}  // namespace deepinfer::vector
