#include "inspect/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine.h"
#include "kernels/kernels.h"
#include "kernels/select.h"
#include "kv/layout.h"
#include "model/transformer.h"
#include "weights/checkpoint.h"

namespace deepinfer {
namespace {

bool Contains(const std::vector<int>& layers, int layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

LayerGroup DescribeLayer(const ModelConfig& c, int layer) {
  LayerGroup group{.first = layer,
                   .last = layer,
                   .decoder = layer >= c.first_decoder_layer(),
                   .kind = c.KindOf(layer),
                   .ratio = c.compress_ratios[static_cast<size_t>(layer)],
                   .candidate_source = layer == c.candidate_source_layer,
                   .ngram = Contains(c.ngram_layers, layer)};
  if (group.kind != LayerKind::kWindow) {
    group.kv_source = c.KvSourceOf(layer);
    group.index_source = c.IndexSourceOf(layer);
  }
  return group;
}

bool SameRole(const LayerGroup& a, const LayerGroup& b) {
  const auto key = [](const LayerGroup& g) {
    return std::tuple(g.decoder, g.kind, g.ratio, g.kv_source, g.index_source, g.candidate_source,
                      g.ngram);
  };
  return key(a) == key(b);
}

std::vector<LayerGroup> GroupLayers(const ModelConfig& c) {
  std::vector<LayerGroup> groups;
  for (int layer = 0; layer < c.num_layers; ++layer) {
    const LayerGroup next = DescribeLayer(c, layer);
    if (!groups.empty() && SameRole(groups.back(), next)) {
      groups.back().last = layer;
    } else {
      groups.push_back(next);
    }
  }
  return groups;
}

// Of a tensor, to decode one token.
int64_t TouchedBytes(const ManifestEntry& entry, const ModelConfig& c) {
  const int64_t bytes = entry.spec.num_bytes();
  switch (entry.part) {
    case ModelPart::kEmbedding:
      return entry.spec.name == "embed.weight" ? bytes / c.vocab_size : bytes;
    case ModelPart::kRoutedExperts:
      // A share of every expert adds up to those that are chosen.
      return bytes * c.num_experts_per_token / c.num_experts;
    case ModelPart::kNgramTables:
      return bytes / entry.spec.shape[0] * c.ngram_row_count();
    case ModelPart::kDraft:
    case ModelPart::kVision:
      return 0;
    default:
      return bytes;
  }
}

std::vector<PartReport> CountParts(const ModelConfig& c) {
  std::vector<PartReport> parts;
  for (int part = 0; part <= static_cast<int>(ModelPart::kVision); ++part) {
    parts.push_back({.part = static_cast<ModelPart>(part)});
  }
  for (const ManifestEntry& entry : ManifestOf(c)) {
    PartReport& part = parts[static_cast<size_t>(entry.part)];
    ++part.tensors;
    part.bytes += entry.spec.num_bytes();
    part.bytes_per_token += TouchedBytes(entry, c);
  }
  return parts;
}

CacheReport DescribeCache(const KvLayout& layout) {
  return {.kv_row_bytes = layout.kv_row_bytes(),
          .index_key_bytes = layout.key_row_bytes(),
          .window_row_bytes = layout.window_row_bytes(),
          .block_bytes = layout.block_bytes(),
          .bytes_per_token = static_cast<double>(layout.block_bytes()) / kBlockTokens,
          .sequence_bytes = layout.fixed_bytes()};
}

Result<MachineReport> DescribeMachine(const InspectOptions& options) {
  ASSIGN_OR_RETURN(const KernelTable* kernels, SelectKernels(options.isa));
  const MachineLimits limits = ReadMachineLimits();
  const uint64_t memory = options.memory > 0 ? options.memory : limits.memory_bytes;
  return MachineReport{.kernels = kernels->name,
                       .threads = options.threads > 0 ? options.threads : limits.cpus,
                       .memory = static_cast<int64_t>(memory)};
}

// None for a directory that holds a configuration only.
Result<std::optional<FilesReport>> ReadFiles(const Path& path, ModelConfig& config) {
  if (!Checkpoint::HasWeights(path)) return std::optional<FilesReport>();
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  if (!checkpoint.HasDraftHead()) config.DropDraftHead();
  RETURN_IF_ERROR(checkpoint.ValidateLayout(SpecsOf(config)));
  FilesReport report{.files = static_cast<int64_t>(checkpoint.files().size()),
                     .tensors = static_cast<int64_t>(checkpoint.tensors().size())};
  for (const SafetensorsFile& file : checkpoint.files()) {
    report.bytes += static_cast<int64_t>(file.file().bytes().size());
  }
  return std::optional(report);
}

int64_t Sum(const std::vector<PartReport>& parts, int64_t PartReport::*member) {
  int64_t sum = 0;
  for (const PartReport& part : parts) sum += part.*member;
  return sum;
}

}  // namespace

int64_t InspectReport::num_tensors() const { return Sum(parts, &PartReport::tensors); }
int64_t InspectReport::num_bytes() const { return Sum(parts, &PartReport::bytes); }
int64_t InspectReport::bytes_per_token() const { return Sum(parts, &PartReport::bytes_per_token); }

Result<InspectReport> Inspect(const InspectOptions& options) {
  InspectReport report;
  ASSIGN_OR_RETURN(report.config, ModelConfig::Load(options.path));
  ASSIGN_OR_RETURN(report.files, ReadFiles(options.path, report.config));
  ASSIGN_OR_RETURN(report.machine, DescribeMachine(options));
  report.layers = GroupLayers(report.config);
  report.parts = CountParts(report.config);
  const KvLayout layout(Transformer::ShapeOf(report.config, options.numerics));
  report.cache = DescribeCache(layout);
  report.memory = PlanMemory(SizesOf(report.config, layout),
                             {.budget = report.machine.memory,
                              .kv_cache = static_cast<int64_t>(options.kv_cache_memory),
                              .max_model_len = options.max_model_len,
                              .max_sequences = 1,
                              .threads = report.machine.threads});
  // A wish out of range is an error; a budget that is too small is a finding.
  if (!report.memory.ok() && report.memory.status().code() == ErrorCode::kInvalidArgument) {
    return std::move(report.memory).status();
  }
  return report;
}

}  // namespace deepinfer
