#include "kernels/avx2/avx2.h"
#include "kernels/avx2/lanes.h"
#include "kernels/isa_tables.h"
#include "kernels/vector/hyper_connection.h"
#include "kernels/vector/index_scores.h"
#include "kernels/vector/moe.h"
#include "kernels/vector/norm.h"
#include "kernels/vector/rows.h"
#include "kernels/vector/selection.h"

namespace deepinfer {

KernelTable Avx2Kernels() {
  using avx2::Lanes;
  return {
      .name = "avx2",
      .pack = avx2::Pack,
      .matmul = avx2::Matmul,
      .embed = vector::Embed<Lanes>,
      .rms_norm = vector::RmsNorm<Lanes>,
      .hc_mixes = vector::HcMixes<Lanes>,
      .hc_pre = vector::HcPre<Lanes>,
      .hc_post = vector::HcPost<Lanes>,
      .mean_streams = vector::MeanStreams<Lanes>,
      .rope = vector::Rope<Lanes>,
      .store_rows = vector::StoreRows<Lanes>,
      .pool_groups = vector::PoolGroups<Lanes>,
      .index_scores = vector::IndexScores<Lanes>,
      .candidate_blocks = vector::CandidateBlocks<Lanes>,
      .select_top_k = vector::SelectTopK<Lanes>,
      .attention = avx2::Attention,
      .route = vector::Route<Lanes>,
      .swiglu = vector::Swiglu<Lanes>,
      .add_rows = vector::AddRows<Lanes>,
      .scale = vector::Scale<Lanes>,
      .decode_fp8_rows = vector::DecodeFp8Rows<Lanes>,
      .ngram_gate = vector::NgramGate<Lanes>,
  };
}

}  // namespace deepinfer
