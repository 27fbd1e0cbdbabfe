#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace deepinfer {
namespace {

// Looks tensors up by name; the manifest has made sure that they exist with their shapes.
class Binder {
 public:
  Binder(const Checkpoint& checkpoint, std::vector<std::unique_ptr<std::byte[]>>& copies)
      : checkpoint_(checkpoint), copies_(copies) {}

  const uint16_t* Bf16(const std::string& name) {
    return reinterpret_cast<const uint16_t*>(Aligned(name, alignof(uint16_t)));
  }
  const float* F32(const std::string& name) {
    return reinterpret_cast<const float*>(Aligned(name, alignof(float)));
  }

  // A matrix by the type it is stored in; `name` without ".weight".
  WeightView Matrix(const std::string& name) { return View(name + ".weight", name + ".scale"); }
  WeightView F32Matrix(const std::string& name) { return View(name, ""); }

 private:
  const StoredTensor& Get(const std::string& name) const {
    const StoredTensor* tensor = checkpoint_.Find(name);
    CHECK(tensor != nullptr);
    return *tensor;
  }

  // safetensors promises no alignment: data that starts at an odd address is copied once.
  const void* Aligned(const std::string& name, size_t alignment) {
    const std::span<const std::byte> bytes = Get(name).view.bytes;
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) return bytes.data();
    copies_.push_back(std::make_unique<std::byte[]>(bytes.size()));
    std::memcpy(copies_.back().get(), bytes.data(), bytes.size());
    return copies_.back().get();
  }

  WeightView View(const std::string& name, const std::string& scale_name) {
    const TensorView& tensor = Get(name).view;
    WeightView view{.n = tensor.shape[0], .k = tensor.shape[1]};
    switch (tensor.dtype) {
      case DType::kF32:
        view.format = WeightFormat::kF32;
        view.data = F32(name);
        return view;
      case DType::kBf16:
        view.format = WeightFormat::kBf16;
        view.data = Bf16(name);
        return view;
      default:
        CHECK(tensor.dtype == DType::kF8E4M3);
        view.format = WeightFormat::kFp8;
        view.data = tensor.bytes.data();
        view.scales = reinterpret_cast<const uint8_t*>(Get(scale_name).view.bytes.data());
        return view;
    }
  }

  const Checkpoint& checkpoint_;
  std::vector<std::unique_ptr<std::byte[]>>& copies_;
};

HyperConnectionWeights BindHyperConnection(Binder& b, const std::string& name) {
  return {.fn = b.F32Matrix(name + "_fn"),
          .base = b.F32(name + "_base"),
          .scale = b.F32(name + "_scale")};
}

AttentionWeights BindAttention(Binder& b, const std::string& name) {
  return {.wq_a = b.Matrix(name + "wq_a"),
          .q_norm = b.Bf16(name + "q_norm.weight"),
          .wq_b = b.Matrix(name + "wq_b"),
          .wkv = b.Matrix(name + "wkv"),
          .kv_norm = b.Bf16(name + "kv_norm.weight"),
          .sink = b.F32(name + "attn_sink"),
          .wo_a = b.Matrix(name + "wo_a"),
          .wo_b = b.Matrix(name + "wo_b")};
}

CompressorWeights BindCompressor(Binder& b, const std::string& name, int ratio) {
  return {.wkv = b.Matrix(name + "compressor.wkv"),
          .wgate = ratio > 1 ? b.Matrix(name + "compressor.wgate") : WeightView{},
          .norm = b.Bf16(name + "compressor.norm.weight"),
          .index_wk = b.Matrix(name + "indexer.wk"),
          .index_k_norm = b.Bf16(name + "indexer.k_norm.weight")};
}

MoeWeights BindMoe(Binder& b, const std::string& name) {
  return {.gate = b.Matrix(name + "gate"),
          .bias = b.F32(name + "gate.bias"),
          .bias_image = b.F32(name + "gate.bias_vl"),
          .shared = {.w1 = b.Matrix(name + "shared_experts.w1"),
                     .w3 = b.Matrix(name + "shared_experts.w3"),
                     .w2 = b.Matrix(name + "shared_experts.w2")}};
}

LayerWeights BindLayer(Binder& b, const ModelConfig& c, int layer) {
  const std::string name = fmt::format("layers.{}.", layer);
  const auto contains = [&](const std::vector<int>& layers) {
    return std::find(layers.begin(), layers.end(), layer) != layers.end();
  };
  LayerWeights w{.attn_norm = b.Bf16(name + "attn_norm.weight"),
                 .ffn_norm = b.Bf16(name + "ffn_norm.weight"),
                 .hc_attn = BindHyperConnection(b, name + "hc_attn"),
                 .hc_ffn = BindHyperConnection(b, name + "hc_ffn"),
                 .attention = BindAttention(b, name + "attn."),
                 .compressor = std::nullopt,
                 .indexer = std::nullopt,
                 .moe = BindMoe(b, name + "ffn."),
                 .ngram = std::nullopt};
  if (contains(c.kv_source_layers)) {
    w.compressor = BindCompressor(b, name + "attn.", c.compress_ratios[static_cast<size_t>(layer)]);
  }
  if (contains(c.index_source_layers)) {
    w.indexer = IndexerWeights{.wq_b = b.Matrix(name + "attn.indexer.wq_b"),
                               .weights_proj = b.Matrix(name + "attn.indexer.weights_proj")};
  }
  if (contains(c.ngram_layers)) {
    w.ngram = NgramWeights{.wkv = b.Matrix(name + "engram.wkv"),
                           .q_weight = b.Bf16(name + "engram.q_weight"),
                           .k_weight = b.Bf16(name + "engram.k_weight")};
  }
  return w;
}

}  // namespace

ModelWeights ModelWeights::Bind(const Checkpoint& checkpoint, const ModelConfig& config) {
  ModelWeights weights;
  Binder b(checkpoint, weights.aligned_copies);
  weights.embed = b.Bf16("embed.weight");
  weights.norm = b.Bf16("norm.weight");
  weights.head = b.Matrix("head");
  for (int layer = 0; layer < config.num_layers; ++layer) {
    weights.layers.push_back(BindLayer(b, config, layer));
  }
  if (config.has_vision) {
    weights.image_marks = {.start = b.Bf16("image_start"),
                           .newline = b.Bf16("image_newline"),
                           .end = b.Bf16("image_end")};
  }
  return weights;
}

}  // namespace deepinfer
