#include "model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/ops.h"
#include "model/layers/attention.h"
#include "model/layers/hyper_connection.h"
#include "model/layers/linear.h"
#include "model/layers/moe.h"
#include "model/layers/ngram_memory.h"
#include "model/step.h"
#include "model/step_begin.h"

namespace deepinfer {
namespace {

RopeTable WindowRope(const ModelConfig& c) { return RopeTable(c.rope_dim, c.rope_theta); }

RopeTable CompressedRope(const ModelConfig& c) {
  return RopeTable(c.rope_dim, c.compress_rope_theta,
                   YarnScaling{.factor = c.yarn.factor,
                               .beta_fast = c.yarn.beta_fast,
                               .beta_slow = c.yarn.beta_slow,
                               .original_positions = c.yarn.original_max_position_embeddings});
}

// Where a row of the batch is now; it must not have been dropped.
int64_t CurrentRow(const Step& step, int64_t batch_row) {
  for (const SequenceStep& seq : step.sequences) {
    if (batch_row >= seq.first_row + seq.num_given) continue;
    CHECK_GE(batch_row, seq.batch_row());
    return seq.row_begin + batch_row - seq.batch_row();
  }
  CHECK(false);
  return -1;
}

bool Contains(const std::vector<int>& layers, int layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

}  // namespace

int32_t ClassOfRow(const NgramLayout& ngrams, const BatchRow& row) {
  return row.kind == RowKind::kImage ? NgramLayout::kDeadClass : ngrams.ClassOf(row.token);
}

Transformer::Transformer(const TransformerParts& parts)
    : parts_(parts),
      window_rope_(WindowRope(*parts.config)),
      compressed_rope_(CompressedRope(*parts.config)) {
  leases_.reserve(static_cast<size_t>(parts.config->num_experts));
}

Transformer::~Transformer() = default;

KvShape Transformer::ShapeOf(const ModelConfig& config, Numerics numerics) {
  KvShape shape{.num_layers = config.num_layers,
                .num_draft_rings = config.num_draft_blocks,
                .window_size = config.window_size,
                .head_dim = config.head_dim,
                .index_head_dim = config.index_head_dim,
                .ngram_look_back = config.ngram_layers.empty() ? 0 : config.ngram_max_order - 1,
                .sources = {},
                .fp32_rows = numerics == Numerics::kFp32};
  for (const int layer : config.kv_source_layers) {
    shape.sources.push_back(
        {.layer = layer, .ratio = config.compress_ratios[static_cast<size_t>(layer)]});
  }
  return shape;
}

// The top level of model.md section 5.
Status Transformer::Forward(ExecContext& context, const ForwardBatch& batch,
                            const ForwardOutput& output, LayerObserver* observer) {
  const FlushDenormals flush;
  const ScratchArena::Scope scope(context.scratch());
  ASSIGN_OR_RETURN(Step step, BeginStep({.context = context,
                                         .parts = parts_,
                                         .leases = leases_,
                                         .observer = observer,
                                         .batch = batch,
                                         .main_hidden = output.main_hidden,
                                         .window_rope = window_rope_,
                                         .compressed_rope = compressed_rope_}));
  if (parts_.ngram_tables != nullptr) RETURN_IF_ERROR(FetchNgramRows(step));
  Embed(step);
  for (int layer = 0; layer < config().num_layers; ++layer) {
    RETURN_IF_ERROR(CheckNotStopped(context));
    RETURN_IF_ERROR(RunLayer(step, layer));
    if (step.rows == 0) break;  // a chunk that leaves nothing but caches behind
  }
  Head(step, batch, output);
  RETURN_IF_ERROR(CheckNotStopped(context));
  CommitStep(step);
  return Status::Ok();
}

void Transformer::Embed(Step& step) const {
  const ModelConfig& c = config();
  deepinfer::Embed(step.context,
                   {.table = parts_.weights->embed,
                    .ids = step.tokens,
                    .override_rows = step.embeddings,
                    .dim = c.hidden_size,
                    .num_streams = c.num_streams,
                    .out = step.h},
                   step.rows);
  // The first sub-block reads stream 0 alone; all streams are equal there.
  std::fill_n(step.pre, step.rows * c.num_streams, 0.0f);
  for (int64_t row = 0; row < step.rows; ++row) step.pre[row * c.num_streams] = 1.0f;
}

Status Transformer::RunLayer(Step& step, int layer) const {
  const ModelConfig& c = config();
  const LayerWeights& w = parts_.weights->layers[static_cast<size_t>(layer)];
  const int64_t streams = c.num_streams;
  const ScratchArena::Scope scope(step.scratch());
  if (step.observer != nullptr) step.observer->OnLayerInput(layer, step.rows, step.h, step.pre);

  if (w.ngram) NgramMemory(step, layer);
  if (Contains(c.draft_target_layers, layer)) NoteDraftTarget(step, layer);

  MixIn(step, step.pre);
  Norm(step, step.x, w.attn_norm, step.rows, c.hidden_size, step.x);
  WriteCaches(step, layer);
  if (!NarrowRows(step, layer)) return Status::Ok();

  const HyperMixes attn = ComputeMixes(step, w.hc_attn);
  Attention(step, layer);
  MixOut(step, attn);

  const HyperMixes ffn = ComputeMixes(step, w.hc_ffn);
  MixIn(step, attn.pre);
  Norm(step, step.x, w.ffn_norm, step.rows, c.hidden_size, step.x);
  RETURN_IF_ERROR(MixtureOfExperts(step, layer));
  MixOut(step, ffn);
  std::copy_n(ffn.pre, step.rows * streams, step.pre);

  step.Note("h", layer, streams * c.hidden_size, step.h);
  step.Note("pre", layer, streams, step.pre);
  return Status::Ok();
}

// logits = head * RMSNorm(hc_pre(h, pre)), for the rows that want them.
void Transformer::Head(Step& step, const ForwardBatch& batch, const ForwardOutput& output) const {
  const ModelConfig& c = config();
  const auto count = static_cast<int64_t>(batch.logit_rows.size());
  if (step.main_hidden != nullptr && step.rows == step.capacity) {
    step.Note("main_hidden", -1, static_cast<int64_t>(c.draft_target_layers.size()) * c.hidden_size,
              step.main_hidden);
  }
  if (count == 0) return;
  const ScratchArena::Scope scope(step.scratch());
  MixIn(step, step.pre);
  auto* x = step.scratch().Alloc<float>(count * c.hidden_size);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = CurrentRow(step, batch.logit_rows[static_cast<size_t>(i)]);
    std::copy_n(step.x + row * c.hidden_size, c.hidden_size, x + i * c.hidden_size);
  }
  Norm(step, x, parts_.weights->norm, count, c.hidden_size, x);
  LinearF32(step, Unquantized(step, x, count, parts_.weights->head), parts_.weights->head,
            output.logits);
}

}  // namespace deepinfer
