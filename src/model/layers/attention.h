// Attention of one layer (model.md sections 6 and 7): the window, and for layers with compressed KV
// the entries that the nearest index source selected.
#pragma once

#include "model/step.h"

namespace deepinfer {

// Rows whose queries and outputs are held at once: 64 heads of 512 are 128 KB a row.
inline constexpr int64_t kAttentionTileRows = 256;

// From step.x [rows, hidden]: the layer's window rows and, if it is a source, the compressed rows
// and index keys.  All that a row which ends here leaves behind.
void WriteCaches(Step& step, int layer);

// step.x [rows, hidden] -> step.y, over the caches that WriteCaches has brought up to date.  An
// index source also makes its selection.
void Attention(Step& step, int layer);

// Section 7.1: appends the compressed KV rows and index keys that the step's new rows complete.
void Compress(Step& step, int layer);

// Sections 7.3 and 7.4: chooses the entries that every row attends to, into step.selection.
// q_latent: [rows, q_lora_rank], the layer's normed low-rank query.
void SelectEntries(Step& step, int layer, const float* q_latent);

// Rotates the last rope_dim channels of x [rows * heads, dim] in place, rounding in release
// numerics.
struct RotateArgs {
  float* x;
  int64_t rows;
  int64_t heads;
  int64_t dim;
  bool inverse = false;
};
void Rotate(Step& step, const CosSin& rope, const RotateArgs& args);

}  // namespace deepinfer
