// The kernels of one instruction set: math without model knowledge.
//
// Every function works on the half-open range [begin, end) of one axis of its Params, named in its
// comment, so that callers may split the work any way they like: no element's bits depend on the
// split (docs/formats/numerics.md).  Callers validate shapes (ops.h); kernels only DCHECK.
// Buffers: row-major, slowest axis first in the comments; fp32 unless stated.  `round` says whether
// results are rounded to bf16 (release numerics).  Inputs and outputs must not overlap unless an
// output is named "in place".  Matrix products are y[m,n] = x[m,k] * w[n,k]^T.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/rows_view.h"

namespace deepinfer {

enum class WeightFormat : uint8_t { kF32, kBf16, kFp8, kFp4 };

// A weight matrix [n, k] as stored in the checkpoint (model.md section 2.1); borrowed.
struct WeightView {
  WeightFormat format = WeightFormat::kF32;
  const void* data = nullptr;  // kF32 float, kBf16 uint16, kFp8 e4m3 bytes, kFp4 k/2 bytes a row
  const uint8_t* scales = nullptr;  // e8m0; kFp8 [n/32 rounded up, k/32]; kFp4 [n, k/32]; else null
  int64_t n = 0;
  int64_t k = 0;
};

// Order and type in which packed activation rows lie (numerics.md section 2).
enum class ColumnOrder : uint8_t {
  kF32,      // fp32, natural order, as given: --numerics fp32 and true fp32 weights
  kNatural,  // bf16, for bf16 weights; rows padded with zeros to a multiple of 32
  kFp8,      // bf16, for FP8 weights; padded to 64
  kFp4,      // bf16, for FP4 weights; padded to 128
};

// Bf16 elements of one packed row (kF32: fp32 elements).
constexpr int64_t PackedStride(ColumnOrder order, int64_t k) {
  const int64_t group = order == ColumnOrder::kFp4   ? 128
                        : order == ColumnOrder::kFp8 ? 64
                        : order == ColumnOrder::kF32 ? 1
                                                     : 32;
  return (k + group - 1) / group * group;
}

struct PackParams {
  const float* x;  // [rows, k], row stride x_stride
  int64_t x_stride;
  int64_t k;
  bool quantize;  // act_quant in groups of 32 (k a multiple of 32); else values are rounded to bf16
  ColumnOrder order;  // kNatural, kFp8 or kFp4
  uint16_t* out;      // [rows, PackedStride(order, k)] bf16
};

struct MatmulParams {
  const void* x;           // packed rows [m, PackedStride(order, k)]
  ColumnOrder order;       // kF32 with any weight format; else the one of w.format
  const int32_t* x_index;  // [m] packed row that output row i reads; null: row i
  int64_t m;
  WeightView w;  // [n, k]
  float* y;      // [m, n], row stride y_stride
  int64_t y_stride;
  bool round;
};

struct EmbedParams {
  const uint16_t* table;                 // [vocab, dim] bf16
  const int32_t* ids;                    // [rows]
  const uint16_t* const* override_rows;  // [rows], may be null: bf16 rows [dim] used where not null
  int64_t dim;
  int num_streams;
  float* out;  // [rows, num_streams, dim], all streams equal
};

struct RmsNormParams {
  const float* x;  // [rows, dim], row stride x_stride
  int64_t x_stride;
  const uint16_t* weight;  // [dim] bf16
  int64_t dim;
  float eps;
  bool round;
  float* y;  // [rows, dim] contiguous
};

// Hyper-connections (model.md section 5, mHC); S = num_streams <= 8.
struct HcMixesParams {
  const float* h;      // [rows, S, dim]
  const float* raw;    // [rows, S*(2+S)] = fn * h, before the norm
  const float* scale;  // [3]
  const float* base;   // [S*(2+S)]
  int num_streams;
  int64_t dim;
  float rms_eps;
  float hc_eps;
  int sinkhorn_iters;
  float* pre;   // [rows, S]
  float* post;  // [rows, S]
  float* comb;  // [rows, S, S], comb[i][j]: from stream i into stream j
};

struct HcPreParams {
  const float* h;    // [rows, S, dim]
  const float* pre;  // [rows, S]
  int num_streams;
  int64_t dim;
  bool round;
  float* y;  // [rows, dim]
};

struct HcPostParams {
  const float* y;     // [rows, dim]
  const float* post;  // [rows, S]
  const float* comb;  // [rows, S, S]
  int num_streams;
  int64_t dim;
  bool round;
  float* h;  // [rows, S, dim] in place
};

struct MeanStreamsParams {
  const float* h;  // [rows, S, dim]
  int num_streams;
  int64_t dim;
  bool round;
  float* y;  // [rows, dim], row stride y_stride: (sum over streams) * (1/S)
  int64_t y_stride;
};

struct RopeParams {
  float* x;  // [rows, heads, dim] in place: the last rope_dim channels of each head rotate
  int64_t heads;
  int64_t dim;
  int64_t rope_dim;
  const float* cos;  // [rows, rope_dim/2]
  const float* sin;  // [rows, rope_dim/2]
  bool inverse;
  bool round;
};

// Quantises rows into a cache format.
struct StoreRowsParams {
  const float* x;  // [rows, dim], row stride x_stride
  int64_t x_stride;
  int64_t dim;
  RowFormat format;
  std::byte* const* out;  // [rows] destinations of RowBytes(format, dim) bytes
};

// Compressor of ratio > 1 (section 7.1): per channel a softmax over the group's gates.
struct PoolGroupsParams {
  const float* const* ug;  // [entries, ratio] pointers to [2, dim]: u then gate of one token
  int ratio;               // <= 128
  int64_t dim;
  bool round;
  float* y;  // [entries, dim]
};

// Scores of one query against index keys (section 7.3).
struct IndexScoresParams {
  const std::byte* query;  // [heads] rows in the format of the keys
  const float* weights;    // [heads]
  int64_t heads;
  int64_t dim;
  RowFormat format;  // kFp4E8M0, or kF32 (no roundings)
  BlockRowsView keys;
  float* scores;  // [entries]: scores[j] of entry j
};

// Candidate blocks from scores (section 7.4).
struct CandidateBlocksParams {
  const float* scores;  // [num_scores], num_scores > 0
  int64_t num_scores;
  int block_size;
  int top_blocks;
  int32_t* blocks;      // out: [<= top_blocks] kept block numbers, ascending
  int32_t* num_blocks;  // out
  float* block_scores;  // scratch: [ceil(num_scores / block_size)]
  int32_t* order;       // scratch: the same
  float* margin;        // out, may be null: as in SelectTopKParams
};

struct SelectTopKParams {
  const float* scores;  // [num_scores]; -inf: excluded
  int64_t num_scores;
  int top_k;
  int32_t* selected;      // out: [<= top_k] entries, ascending
  int32_t* num_selected;  // out
  int32_t* order;         // scratch: [num_scores]
  float* margin;          // out, may be null: worst score kept minus best left out; +inf if none is
};

// One query position: where its keys are.
struct AttentionRow {
  WindowView window;
  int64_t pos;              // of the query; its window row is already stored
  BlockRowsView rows;       // compressed KV; unused when num_selected is 0
  const int32_t* selected;  // [num_selected] entries, ascending; may be null when there are none
  int32_t num_selected;
};

struct AttentionParams {
  const float* q;            // [rows, heads, dim]
  const AttentionRow* rows;  // [rows]
  const float* sink;         // [heads]
  int64_t heads;
  int64_t dim;
  int window_size;
  float scale;              // dim^-0.5
  RowFormat window_format;  // kFp8E8M0 or kF32
  RowFormat rows_format;    // kFp4E4M3 or kF32
  bool round;
  float* o;  // [rows, heads, dim]
};

struct RouteParams {
  const float* logits;      // [rows, num_experts]
  const float* bias;        // [num_experts], for text rows
  const float* bias_image;  // [num_experts], for image rows
  const uint8_t* is_image;  // [rows]
  int num_experts;
  int top_k;
  float scale;
  int32_t* experts;  // [rows, top_k], best first
  float* weights;    // [rows, top_k]
  float* margins;    // [rows], may be null: the same gap of s + bias; +inf when all are kept
};

struct SwigluParams {
  const float* gate;        // [rows, dim]
  const float* up;          // [rows, dim]
  const float* row_weight;  // [rows], multiplies the result; may be null
  int64_t dim;
  float limit;  // gate <= limit, |up| <= limit
  bool round;
  float* y;  // [rows, dim]
};

// y[index[i]] += x[i] in fp32; an index occurs once at most.
struct AddRowsParams {
  const float* x;        // [rows, dim]
  const int32_t* index;  // [rows]; null: row i
  int64_t dim;
  float* y;  // [*, dim] in place
};

// x = r(x * factor), in place.
struct ScaleParams {
  float* x;  // [count]
  float factor;
  bool round;
};

// n-gram memory (section 9.3): table rows to activations.
struct DecodeFp8RowsParams {
  const uint8_t* codes;   // [rows, dim] e4m3
  const uint8_t* scales;  // [rows, dim/32] e8m0
  int64_t dim;
  float* y;  // [rows, dim]
};

struct NgramGateParams {
  const float* kv;           // [rows, (S+1)*dim]: S keys, then the value
  const uint16_t* q_weight;  // [S, dim] bf16
  const uint16_t* k_weight;  // [S, dim] bf16
  const uint8_t* is_image;   // [rows]; image rows are left as they are
  int num_streams;
  int64_t dim;
  float eps;
  bool round;
  float* h;  // [rows, S, dim] in place
};

struct KernelTable {
  const char* name;  // "scalar", "avx2", "avx512"

  void (*pack)(const PackParams&, int64_t begin, int64_t end);                 // rows
  void (*matmul)(const MatmulParams&, int64_t begin, int64_t end);             // outputs n
  void (*embed)(const EmbedParams&, int64_t begin, int64_t end);               // rows
  void (*rms_norm)(const RmsNormParams&, int64_t begin, int64_t end);          // rows
  void (*hc_mixes)(const HcMixesParams&, int64_t begin, int64_t end);          // rows
  void (*hc_pre)(const HcPreParams&, int64_t begin, int64_t end);              // rows
  void (*hc_post)(const HcPostParams&, int64_t begin, int64_t end);            // rows
  void (*mean_streams)(const MeanStreamsParams&, int64_t begin, int64_t end);  // rows
  void (*rope)(const RopeParams&, int64_t begin, int64_t end);                 // rows
  void (*store_rows)(const StoreRowsParams&, int64_t begin, int64_t end);      // rows
  void (*pool_groups)(const PoolGroupsParams&, int64_t begin, int64_t end);    // entries
  void (*index_scores)(const IndexScoresParams&, int64_t begin, int64_t end);  // entries
  void (*candidate_blocks)(const CandidateBlocksParams&);
  void (*select_top_k)(const SelectTopKParams&);
  void (*attention)(const AttentionParams&, int64_t begin, int64_t end);            // rows
  void (*route)(const RouteParams&, int64_t begin, int64_t end);                    // rows
  void (*swiglu)(const SwigluParams&, int64_t begin, int64_t end);                  // rows
  void (*add_rows)(const AddRowsParams&, int64_t begin, int64_t end);               // rows
  void (*scale)(const ScaleParams&, int64_t begin, int64_t end);                    // elements
  void (*decode_fp8_rows)(const DecodeFp8RowsParams&, int64_t begin, int64_t end);  // rows
  void (*ngram_gate)(const NgramGateParams&, int64_t begin, int64_t end);           // rows
};

}  // namespace deepinfer
