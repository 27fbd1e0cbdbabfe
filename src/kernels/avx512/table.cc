#include "kernels/avx512/avx512.h"
#include "kernels/avx512/lanes.h"
#include "kernels/isa_tables.h"
#include "kernels/vector/hyper_connection.h"
#include "kernels/vector/index_scores.h"
#include "kernels/vector/moe.h"
#include "kernels/vector/norm.h"
#include "kernels/vector/rows.h"
#include "kernels/vector/selection.h"

namespace deepinfer {

KernelTable Avx512Kernels() {
  using avx512::Lanes;
  return {
      .name = "avx512",
      .pack = avx512::Pack,
      .matmul = avx512::Matmul,
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
      .attention = avx512::Attention,
      .route = vector::Route<Lanes>,
      .swiglu = vector::Swiglu<Lanes>,
      .add_rows = vector::AddRows<Lanes>,
      .scale = vector::Scale<Lanes>,
      .decode_fp8_rows = vector::DecodeFp8Rows<Lanes>,
      .ngram_gate = vector::NgramGate<Lanes>,
  };
}

}  // namespace deepinfer
