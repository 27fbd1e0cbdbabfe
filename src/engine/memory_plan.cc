#include "engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/byte_text.h"
#include "kv/set_aside.h"
#include "model/manifest.h"
#include "model/transformer.h"

namespace deepinfer {
namespace {

// Heap of a loaded process, measured at the released dimensions: 4 MB without a checkpoint; per
// tensor its name and its entries in tables; per token of the vocabulary its text, rank, merges.
constexpr int64_t kProcessBytes = int64_t{4} << 20;
constexpr int64_t kTensorBytes = 400;
constexpr int64_t kTokenBytes = 200;
// Of a vocabulary entry, per sequence in flight: its counts for the penalties and its logit.
constexpr int64_t kSequenceTokenBytes = 8 + 4;
// Handle, pointer and reference count of a block; a table may hold every block of a sequence.
constexpr int64_t kBlockEntryBytes = 32;

int64_t BlocksFor(int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

// One more than its tokens take: the tail that a fork shares is copied before it is written.
int64_t BlocksOfSequence(int64_t tokens) { return BlocksFor(tokens) + 1; }

// The plan while it is made.
class Planner {
 public:
  Planner(const MemorySizes& sizes, const MemoryRequest& request)
      : sizes_(sizes), request_(request) {}

  Result<MemoryPlan> Plan() {
    RETURN_IF_ERROR(CheckRequest());
    plan_.budget = request_.budget;
    plan_.process = sizes_.process;
    plan_.dense = sizes_.dense;
    plan_.experts = sizes_.experts;
    plan_.tables = sizes_.tables;
    ChooseSequences();
    ChooseRows();
    if (Left() < LeastKv()) return TooSmall();
    RETURN_IF_ERROR(DivideTheRest());
    return plan_;
  }

 private:
  Status CheckRequest() const {
    if (request_.max_model_len >= 0 && request_.max_model_len <= sizes_.longest) {
      return Status::Ok();
    }
    return InvalidArgument(fmt::format("--max-model-len: found {}, expected 1 to {}",
                                       request_.max_model_len, sizes_.longest));
  }

  int64_t WantedLen() const {
    return request_.max_model_len > 0 ? request_.max_model_len : sizes_.longest;
  }
  // What the pool must hold at least: one sequence of the length that was asked for, or of one
  // block where the length follows from the memory.
  int64_t LeastBlocks() const {
    return BlocksOfSequence(request_.max_model_len > 0
                                ? request_.max_model_len
                                : std::min<int64_t>(kBlockTokens, sizes_.longest));
  }
  int64_t BlockBytes() const { return sizes_.block + kBlockEntryBytes; }
  int64_t LeastKv() const {
    return request_.kv_cache > 0 ? request_.kv_cache : LeastBlocks() * BlockBytes();
  }
  int64_t Left() const {
    return plan_.budget - plan_.process - plan_.step - plan_.sequences - plan_.dense;
  }
  int64_t StepBytes(int64_t rows, int64_t max_len) const {
    return sizes_.step({.rows = rows,
                        .sequences = std::min(rows, plan_.max_sequences),
                        .max_len = max_len,
                        .threads = request_.threads});
  }

  // Where nobody says how many: an eighth of what the weights leave, for what does not depend on
  // their length.
  void ChooseSequences() {
    plan_.max_sequences = request_.max_sequences;
    if (plan_.max_sequences == 0) {
      const int64_t fitting = Left() / 8 / std::max<int64_t>(1, sizes_.sequence);
      plan_.max_sequences = std::clamp<int64_t>(fitting, 1, kMaxDerivedSequences);
    }
    plan_.sequences = plan_.max_sequences * sizes_.sequence;
  }

  void ChooseRows() {
    int64_t rows = request_.max_batch_rows > 0 ? request_.max_batch_rows : kMaxBatchRows;
    plan_.step = StepBytes(rows, WantedLen());
    while (request_.max_batch_rows == 0 && rows > kMinPlannedRows && Left() < LeastKv()) {
      rows /= 2;
      plan_.step = StepBytes(rows, WantedLen());
    }
    plan_.max_batch_rows = rows;
  }

  Status TooSmall() const {
    const int64_t needed = plan_.budget - Left() + LeastKv();
    return ResourceExhausted(fmt::format(
        "memory: found a budget of {}, expected at least {}: {} for weights that every token "
        "reads, "
        "{} for a step of {} rows, {} for {} sequence(s), {} for KV blocks, {} for the process; "
        "raise --memory, or lower {}",
        ShortBytes(plan_.budget), ShortBytes(needed), ShortBytes(plan_.dense),
        ShortBytes(plan_.step), plan_.max_batch_rows, ShortBytes(plan_.sequences),
        plan_.max_sequences, ShortBytes(LeastKv()), ShortBytes(plan_.process),
        request_.kv_cache > 0 ? "--kv-cache-memory" : "--max-model-len or --max-num-seqs"));
  }

  // KV blocks get what all sequences could use, unless experts need the room more: then at most
  // half of it.
  Status DivideTheRest() {
    const int64_t wanted = plan_.max_sequences * BlocksOfSequence(WantedLen());
    if (request_.kv_cache > 0) {
      plan_.num_blocks = request_.kv_cache / BlockBytes();
      if (plan_.num_blocks < LeastBlocks()) {
        return ResourceExhausted(fmt::format(
            "--kv-cache-memory: found {}, expected at least {} for one sequence of {} tokens",
            ShortBytes(request_.kv_cache), ShortBytes(LeastBlocks() * BlockBytes()),
            request_.max_model_len > 0 ? request_.max_model_len : kBlockTokens));
      }
    } else {
      const int64_t mapped = plan_.experts + plan_.tables;
      const int64_t most = std::max(Left() - mapped, Left() / 2);
      plan_.num_blocks =
          std::clamp(most / BlockBytes(), LeastBlocks(), std::max(LeastBlocks(), wanted));
    }
    plan_.kv_cache = plan_.num_blocks * BlockBytes();
    plan_.max_model_len =
        request_.max_model_len > 0
            ? request_.max_model_len
            : std::min(sizes_.longest, (plan_.num_blocks - 1) * int64_t{kBlockTokens});
    plan_.step = StepBytes(plan_.max_batch_rows, plan_.max_model_len);
    const int64_t whole = sizes_.set_aside + BlocksFor(plan_.max_model_len) * sizes_.block;
    plan_.set_aside = std::min((plan_.max_sequences - 1) * whole, (Left() - plan_.kv_cache) / 4);
    FillPageCache();
    return Status::Ok();
  }

  void FillPageCache() {
    int64_t left = Left() - plan_.kv_cache - plan_.set_aside;
    plan_.experts_resident = std::min(left, plan_.experts);
    left -= plan_.experts_resident;
    plan_.tables_resident = std::min(left, plan_.tables);
  }

  const MemorySizes& sizes_;
  const MemoryRequest& request_;
  MemoryPlan plan_;
};

std::string Share(int64_t part, int64_t whole) {
  if (whole == 0) return "none";
  return fmt::format("{:.0f} % of {}",
                     100.0 * static_cast<double>(part) / static_cast<double>(whole),
                     ShortBytes(whole));
}

}  // namespace

MemorySizes SizesOf(const ModelConfig& config, const KvLayout& layout) {
  MemorySizes sizes{.process = kProcessBytes + config.vocab_size * kTokenBytes,
                    .block = std::max<int64_t>(1, layout.block_bytes()),
                    .longest = config.max_position_embeddings};
  for (const ManifestEntry& entry : ManifestOf(config)) {
    const int64_t bytes = entry.spec.num_bytes();
    sizes.process += kTensorBytes;
    switch (entry.part) {
      case ModelPart::kRoutedExperts:
        sizes.experts += bytes;
        break;
      case ModelPart::kNgramTables:
        sizes.tables += bytes;
        break;
      case ModelPart::kDraft:
      case ModelPart::kVision:
        break;
      default:
        // A token reads one row of the embedding.
        (entry.spec.name == "embed.weight" ? sizes.tables : sizes.dense) += bytes;
    }
  }
  sizes.set_aside = SetAsideBytes(layout, 0);
  sizes.sequence = layout.fixed_bytes() + config.vocab_size * kSequenceTokenBytes;
  sizes.step = [&config, &layout](const StepShape& shape) {
    return StepScratchBytes(config, layout, shape) + KernelWorkspaceBytes(config, shape.threads);
  };
  return sizes;
}

Result<MemoryPlan> PlanMemory(const MemorySizes& sizes, const MemoryRequest& request) {
  return Planner(sizes, request).Plan();
}

std::string PlanLine(const MemoryPlan& plan) {
  return fmt::format(
      "memory budget {}: {} for the process and its steps, {} KV cache for {} sequence(s) of up to "
      "{} tokens, {} weights that stay; {} of experts in memory",
      ShortBytes(plan.budget), ShortBytes(plan.process + plan.step + plan.sequences),
      ShortBytes(plan.kv_cache), plan.max_sequences, Grouped(plan.max_model_len),
      ShortBytes(plan.dense), Share(plan.experts_resident, plan.experts));
}

}  // namespace deepinfer
