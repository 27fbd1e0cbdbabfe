#include "kernels/scalar/scalar.h"
#include "kernels/select.h"

namespace deepinfer {

const KernelTable& ScalarKernels() {
  static constexpr KernelTable kTable = {
      .name = "scalar",
      .pack = scalar::Pack,
      .matmul = scalar::Matmul,
      .embed = scalar::Embed,
      .rms_norm = scalar::RmsNorm,
      .hc_mixes = scalar::HcMixes,
      .hc_pre = scalar::HcPre,
      .hc_post = scalar::HcPost,
      .mean_streams = scalar::MeanStreams,
      .rope = scalar::Rope,
      .store_rows = scalar::StoreRows,
      .pool_groups = scalar::PoolGroups,
      .index_scores = scalar::IndexScores,
      .candidate_blocks = scalar::CandidateBlocks,
      .select_top_k = scalar::SelectTopK,
      .attention = scalar::Attention,
      .route = scalar::Route,
      .swiglu = scalar::Swiglu,
      .add_rows = scalar::AddRows,
      .scale = scalar::Scale,
      .decode_fp8_rows = scalar::DecodeFp8Rows,
      .ngram_gate = scalar::NgramGate,
  };
  return kTable;
}

}  // namespace deepinfer
