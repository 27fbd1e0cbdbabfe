// The ops that the model is written in: kernels over a whole axis, split among the context's
// threads. Shapes are checked here once.  Results do not depend on how the work is split.
#pragma once

#include <cstdint>

#include "kernels/exec_context.h"
#include "kernels/kernels.h"
#include "kernels/op_profile.h"

namespace deepinfer {

void Pack(ExecContext& context, const PackParams& params, int64_t rows);
void Matmul(ExecContext& context, const MatmulParams& params);
// Which op a product is accounted as.
Op MatmulOp(WeightFormat format);
// Outputs that one thread computes at a time when `products` products of n outputs are cut among
// the context's threads: many, so that a kernel sees weights to read ahead, but few enough that
// every thread gets several parts.  A multiple of 4.
int64_t OutputGrain(const ExecContext& context, int64_t products, int64_t n);
// Bytes of a weight, codes and scales.
int64_t WeightBytes(const WeightView& w);
void Embed(ExecContext& context, const EmbedParams& params, int64_t rows);
void RmsNorm(ExecContext& context, const RmsNormParams& params, int64_t rows);
void HcMixes(ExecContext& context, const HcMixesParams& params, int64_t rows);
void HcPre(ExecContext& context, const HcPreParams& params, int64_t rows);
void HcPost(ExecContext& context, const HcPostParams& params, int64_t rows);
void MeanStreams(ExecContext& context, const MeanStreamsParams& params, int64_t rows);
void Rope(ExecContext& context, const RopeParams& params, int64_t rows);
void StoreRows(ExecContext& context, const StoreRowsParams& params, int64_t rows);
void PoolGroups(ExecContext& context, const PoolGroupsParams& params, int64_t entries);
void Attend(ExecContext& context, const AttentionParams& params, int64_t rows);
void Route(ExecContext& context, const RouteParams& params, int64_t rows);
void Swiglu(ExecContext& context, const SwigluParams& params, int64_t rows);
void AddRows(ExecContext& context, const AddRowsParams& params, int64_t rows);
void Scale(ExecContext& context, const ScaleParams& params, int64_t count);
void DecodeFp8Rows(ExecContext& context, const DecodeFp8RowsParams& params, int64_t rows);
void NgramGate(ExecContext& context, const NgramGateParams& params, int64_t rows);

// How a layer takes part in the hierarchical selection (model.md section 7.4).
enum class CandidateUse : uint8_t {
  kNone,  // all visible entries compete
  kMake,  // the same, and the best blocks become the candidates
  kUse,   // only entries inside the candidate blocks compete
};

struct IndexSelectParams {
  const std::byte* queries;  // [rows, heads] rows in `format`
  const float* weights;      // [rows, heads]
  int64_t heads;
  int64_t dim;
  RowFormat format;
  const BlockRowsView* keys;   // [rows]
  const int64_t* num_visible;  // [rows] entries that the row may see
  int top_k;
  int32_t* selected;      // out: [rows, top_k], ascending
  int32_t* num_selected;  // out: [rows]
  CandidateUse candidates;
  int block_size;  // entries of a candidate block
  int top_blocks;
  int32_t* candidate_blocks;      // [rows, top_blocks], ascending: out of kMake, in of kUse
  int32_t* num_candidate_blocks;  // [rows]
  float* margins;                 // out, may be null: [rows] SelectTopKParams::margin
  float* candidate_margins;       // out of kMake, may be null: [rows]
};
void IndexSelect(ExecContext& context, const IndexSelectParams& params, int64_t rows);

// Which rows each chosen expert sees; views into the context's scratch memory.
struct ExpertPlan {
  int32_t num_experts;     // chosen by at least one row
  const int32_t* experts;  // [num_experts], ascending
  const int32_t* offsets;  // [num_experts + 1] into rows and weights
  const int32_t* rows;     // [rows * top_k], ascending within an expert
  const float* weights;    // [rows * top_k]
};

struct ExpertPlanShape {
  int64_t rows;
  int64_t top_k;
  int64_t num_experts;
};

// experts, weights: [rows, top_k] as Route() gives them.
ExpertPlan PlanExperts(ExecContext& context, const int32_t* experts, const float* weights,
                       const ExpertPlanShape& shape);

}  // namespace deepinfer
