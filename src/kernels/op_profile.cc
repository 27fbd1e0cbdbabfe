#include "kernels/op_profile.h"

namespace deepinfer {

std::string_view OpName(Op op) {
  switch (op) {
    case Op::kPack:
      return "pack";
    case Op::kMatmulFp8:
      return "matmul fp8";
    case Op::kMatmulFp4:
      return "matmul fp4";
    case Op::kMatmulBf16:
      return "matmul bf16";
    case Op::kMatmulF32:
      return "matmul fp32";
    case Op::kEmbed:
      return "embed";
    case Op::kRmsNorm:
      return "rms_norm";
    case Op::kHcMixes:
      return "hc_mixes";
    case Op::kHcPre:
      return "hc_pre";
    case Op::kHcPost:
      return "hc_post";
    case Op::kMeanStreams:
      return "mean_streams";
    case Op::kRope:
      return "rope";
    case Op::kStoreRows:
      return "store_rows";
    case Op::kPoolGroups:
      return "pool_groups";
    case Op::kIndexSelect:
      return "index_select";
    case Op::kAttention:
      return "attention";
    case Op::kRoute:
      return "route";
    case Op::kSwiglu:
      return "swiglu";
    case Op::kAddRows:
      return "add_rows";
    case Op::kScale:
      return "scale";
    case Op::kDecodeRows:
      return "decode_rows";
    case Op::kNgramGate:
      return "ngram_gate";
    case Op::kCount:
      break;
  }
  return "";
}

}  // namespace deepinfer
