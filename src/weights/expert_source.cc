#include "weights/expert_source.h"

#include <fmt/format.h>

#include "base/check.h"

namespace deepinfer {
namespace {

constexpr const char* kMatrices[] = {"w1", "w3", "w2"};

const uint8_t* BytesOf(const Checkpoint& checkpoint, const std::string& name) {
  const StoredTensor* tensor = checkpoint.Find(name);
  CHECK(tensor != nullptr);
  return reinterpret_cast<const uint8_t*>(tensor->view.bytes.data());
}

struct MappedExpert {
  Fp4MatrixView matrices[3];        // in the order of kMatrices
  const StoredTensor* scales[3]{};  // of them
  bool checked = false;             // the scale bytes were looked at
};

MappedExpert MapExpert(const Checkpoint& checkpoint, const std::string& prefix) {
  MappedExpert expert;
  for (size_t m = 0; m < std::size(kMatrices); ++m) {
    const std::string name = fmt::format("{}.{}.", prefix, kMatrices[m]);
    expert.matrices[m] = {.codes = BytesOf(checkpoint, name + "weight"),
                          .scales = BytesOf(checkpoint, name + "scale")};
    expert.scales[m] = checkpoint.Find(name + "scale");
  }
  return expert;
}

std::string NameOf(const std::string& layer_prefix, int32_t id) {
  return fmt::format("{}.ffn.experts.{}", layer_prefix, id);
}

class MappedExpertSource : public ExpertSource {
 public:
  MappedExpertSource(const Checkpoint& checkpoint, const ExpertLayout& layout)
      : checkpoint_(checkpoint) {
    for (int layer = 0; layer < layout.num_layers; ++layer) {
      AddLayer(fmt::format("layers.{}", layer), layout.num_experts);
    }
    for (int block = 0; block < layout.num_draft_blocks; ++block) {
      AddLayer(fmt::format("mtp.{}", block), layout.num_draft_experts);
    }
  }

  Status Acquire(int layer, std::span<const int32_t> ids,
                 std::vector<ExpertLease>& leases) override {
    MappedLayer& mapped = layers_[static_cast<size_t>(layer)];
    for (const int32_t id : ids) {
      MappedExpert& expert = mapped.experts[static_cast<size_t>(id)];
      if (!expert.checked) RETURN_IF_ERROR(CheckScales(expert, mapped.prefix, id));
      expert.checked = true;
      leases.emplace_back(expert.matrices[0], expert.matrices[1], expert.matrices[2]);
    }
    return Status::Ok();
  }

 private:
  struct MappedLayer {
    std::string prefix;  // "layers.3"
    std::vector<MappedExpert> experts;
  };

  void AddLayer(std::string prefix, int count) {
    MappedLayer layer{.prefix = std::move(prefix), .experts = {}};
    layer.experts.reserve(static_cast<size_t>(count));
    for (int e = 0; e < count; ++e) {
      layer.experts.push_back(MapExpert(checkpoint_, NameOf(layer.prefix, e)));
    }
    layers_.push_back(std::move(layer));
  }

  // 1.1 MB at the released dimensions, which the products are about to read anyway.
  static Status CheckScales(const MappedExpert& expert, const std::string& layer, int32_t id) {
    for (size_t m = 0; m < std::size(kMatrices); ++m) {
      const auto bad = FirstBadScale(expert.scales[m]->view.bytes);
      if (!bad) continue;
      const std::string name = fmt::format("{}.{}.scale", NameOf(layer, id), kMatrices[m]);
      return BadScaleError(*expert.scales[m], name, *bad);
    }
    return Status::Ok();
  }

  const Checkpoint& checkpoint_;
  std::vector<MappedLayer> layers_;  // draft blocks behind the backbone
};

}  // namespace

std::unique_ptr<ExpertSource> MapExperts(const Checkpoint& checkpoint, const ExpertLayout& layout) {
  return std::make_unique<MappedExpertSource>(checkpoint, layout);
}

}  // namespace deepinfer
