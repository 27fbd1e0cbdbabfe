#include "weights/ngram_source.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "base/check.h"

namespace deepinfer {
namespace {

struct MappedTable {
  const StoredTensor* codes;
  const StoredTensor* scales;
  std::string name;
  int64_t num_rows;
  int64_t code_bytes;   // of a row
  int64_t scale_bytes;  // of a row
};

class MappedNgramSource : public NgramSource {
 public:
  MappedNgramSource(const Checkpoint& checkpoint, std::span<const int> layers) {
    for (const int layer : layers) {
      const std::string name = fmt::format("layers.{}.engram.embed.", layer);
      const StoredTensor* codes = checkpoint.Find(name + "weight");
      const StoredTensor* scales = checkpoint.Find(name + "scale");
      CHECK(codes != nullptr);
      CHECK(scales != nullptr);
      tables_.push_back({.codes = codes,
                         .scales = scales,
                         .name = name + "scale",
                         .num_rows = codes->view.shape[0],
                         .code_bytes = codes->view.shape[1],
                         .scale_bytes = scales->view.shape[1]});
      // Reading ahead around a row of 264 bytes would only fill memory with strangers.
      AdviseRandom(*codes);
      AdviseRandom(*scales);
    }
  }

  void Prefetch(int table, std::span<const int64_t> rows) override {
    const MappedTable& t = tables_[static_cast<size_t>(table)];
    for (const int64_t row : rows) {
      AdviseWillNeed(*t.codes, row * t.code_bytes, t.code_bytes);
      AdviseWillNeed(*t.scales, row * t.scale_bytes, t.scale_bytes);
    }
  }

  Status Fetch(int table, std::span<const int64_t> rows, uint8_t* codes, uint8_t* scales) override {
    const MappedTable& t = tables_[static_cast<size_t>(table)];
    for (size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i] >= 0 && rows[i] < t.num_rows);
      const auto at = static_cast<int64_t>(i);
      std::memcpy(codes + at * t.code_bytes, t.codes->view.bytes.data() + rows[i] * t.code_bytes,
                  static_cast<size_t>(t.code_bytes));
      const auto row_scales = t.scales->view.bytes.subspan(
          static_cast<size_t>(rows[i] * t.scale_bytes), static_cast<size_t>(t.scale_bytes));
      if (const auto bad = FirstBadScale(row_scales)) {
        return BadScaleError(*t.scales, t.name, rows[i] * t.scale_bytes + *bad);
      }
      std::memcpy(scales + at * t.scale_bytes, row_scales.data(), row_scales.size());
    }
    return Status::Ok();
  }

 private:
  static uint64_t OffsetOf(const StoredTensor& tensor) {
    return static_cast<uint64_t>(tensor.view.bytes.data() - tensor.file->file().bytes().data());
  }
  static void AdviseRandom(const StoredTensor& tensor) {
    tensor.file->file().Advise(OffsetOf(tensor), tensor.view.bytes.size(),
                               MappedFile::Advice::kRandom);
  }
  static void AdviseWillNeed(const StoredTensor& tensor, int64_t at, int64_t size) {
    tensor.file->file().Advise(OffsetOf(tensor) + static_cast<uint64_t>(at),
                               static_cast<uint64_t>(size), MappedFile::Advice::kWillNeed);
  }

  std::vector<MappedTable> tables_;
};

}  // namespace

std::unique_ptr<NgramSource> MapNgramTables(const Checkpoint& checkpoint,
                                            std::span<const int> layers) {
  return std::make_unique<MappedNgramSource>(checkpoint, layers);
}

}  // namespace deepinfer
