// Every tensor that a checkpoint of a configuration holds (model.md section 2.2), and which part of
// the model it belongs to.
#pragma once

#include <string_view>
#include <vector>

#include "model/config.h"
#include "weights/safetensors_writer.h"

namespace deepinfer {

enum class ModelPart {
  kEmbedding,   // embed, head, final norm
  kAttention,   // projections, norms, sinks
  kCompressor,  // compressors and indexers
  kHyperConnection,
  kGate,
  kSharedExperts,
  kRoutedExperts,
  kNgramTables,
  kNgramProjection,
  kDraft,   // everything under mtp.
  kVision,  // encoder, aligner, image marks
};
std::string_view PartName(ModelPart part);

struct ManifestEntry {
  TensorSpec spec;
  ModelPart part;
};

// In checkpoint order.  At the released configuration: 96,085 tensors, 510,286,023,000 bytes.
std::vector<ManifestEntry> ManifestOf(const ModelConfig& config);

// The specs alone, for Checkpoint::Validate.
std::vector<TensorSpec> SpecsOf(const ModelConfig& config);

}  // namespace deepinfer
