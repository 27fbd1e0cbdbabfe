#include "weights/expert_source.h"

#include <fmt/format.h>

#include "base/check.h"

namespace deepinfer {
namespace {

const uint8_t* BytesOf(const Checkpoint& checkpoint, const std::string& name) {
  const StoredTensor* tensor = checkpoint.Find(name);
  CHECK(tensor != nullptr);
  return reinterpret_cast<const uint8_t*>(tensor->view.bytes.data());
}

struct MappedExpert {
  Fp4MatrixView w1, w3, w2;
};

MappedExpert MapExpert(const Checkpoint& checkpoint, const std::string& prefix) {
  const auto matrix = [&](const char* name) {
    return Fp4MatrixView{.codes = BytesOf(checkpoint, fmt::format("{}.{}.weight", prefix, name)),
                         .scales = BytesOf(checkpoint, fmt::format("{}.{}.scale", prefix, name))};
  };
  return {.w1 = matrix("w1"), .w3 = matrix("w3"), .w2 = matrix("w2")};
}

class MappedExpertSource : public ExpertSource {
 public:
  MappedExpertSource(const Checkpoint& checkpoint, const ExpertLayout& layout) {
    for (int layer = 0; layer < layout.num_layers; ++layer) {
      AddLayer(checkpoint, fmt::format("layers.{}", layer), layout.num_experts);
    }
    for (int block = 0; block < layout.num_draft_blocks; ++block) {
      AddLayer(checkpoint, fmt::format("mtp.{}", block), layout.num_draft_experts);
    }
  }

  Status Acquire(int layer, std::span<const int32_t> ids,
                 std::vector<ExpertLease>& leases) override {
    const std::vector<MappedExpert>& experts = layers_[static_cast<size_t>(layer)];
    for (const int32_t id : ids) {
      const MappedExpert& expert = experts[static_cast<size_t>(id)];
      leases.emplace_back(expert.w1, expert.w3, expert.w2);
    }
    return Status::Ok();
  }

 private:
  void AddLayer(const Checkpoint& checkpoint, const std::string& prefix, int count) {
    std::vector<MappedExpert> experts;
    experts.reserve(static_cast<size_t>(count));
    for (int e = 0; e < count; ++e) {
      experts.push_back(MapExpert(checkpoint, fmt::format("{}.ffn.experts.{}", prefix, e)));
    }
    layers_.push_back(std::move(experts));
  }

  std::vector<std::vector<MappedExpert>> layers_;  // [layer][expert]
};

}  // namespace

std::unique_ptr<ExpertSource> MapExperts(const Checkpoint& checkpoint, const ExpertLayout& layout) {
  return std::make_unique<MappedExpertSource>(checkpoint, layout);
}

}  // namespace deepinfer
