// Every kernel in plain loops: the definition of truth (docs/formats/numerics.md).
#pragma once

#include "kernels/kernels.h"

namespace deepinfer::scalar {

void Pack(const PackParams& p, int64_t begin, int64_t end);
void Matmul(const MatmulParams& p, int64_t begin, int64_t end);
void Embed(const EmbedParams& p, int64_t begin, int64_t end);
void RmsNorm(const RmsNormParams& p, int64_t begin, int64_t end);
void HcMixes(const HcMixesParams& p, int64_t begin, int64_t end);
void HcPre(const HcPreParams& p, int64_t begin, int64_t end);
void HcPost(const HcPostParams& p, int64_t begin, int64_t end);
void MeanStreams(const MeanStreamsParams& p, int64_t begin, int64_t end);
void Rope(const RopeParams& p, int64_t begin, int64_t end);
void StoreRows(const StoreRowsParams& p, int64_t begin, int64_t end);
void PoolGroups(const PoolGroupsParams& p, int64_t begin, int64_t end);
void IndexScores(const IndexScoresParams& p, int64_t begin, int64_t end);
void CandidateBlocks(const CandidateBlocksParams& p);
void SelectTopK(const SelectTopKParams& p);
void Attention(const AttentionParams& p, int64_t begin, int64_t end);
void Route(const RouteParams& p, int64_t begin, int64_t end);
void Swiglu(const SwigluParams& p, int64_t begin, int64_t end);
void AddRows(const AddRowsParams& p, int64_t begin, int64_t end);
void Scale(const ScaleParams& p, int64_t begin, int64_t end);
void DecodeFp8Rows(const DecodeFp8RowsParams& p, int64_t begin, int64_t end);
void NgramGate(const NgramGateParams& p, int64_t begin, int64_t end);

// Steps on a few values of a row that other instruction sets take over as they are.

// The mixes of one row; inverse: 1 / root mean square of its streams.
void MixesOfRow(const HcMixesParams& p, int64_t row, float inverse);
// The gate of one stream; norm: product of the two inverse root mean squares.
float NgramGateOf(float product, float norm, int64_t dim);

}  // namespace deepinfer::scalar
