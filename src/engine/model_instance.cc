#include "engine/model_instance.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "base/machine.h"
#include "engine/fingerprint.h"
#include "kernels/select.h"
#include "model/manifest.h"
#include "tokenizer/token_classes.h"

namespace deepinfer {
namespace {

constexpr uint64_t kMaxNgramFileBytes = uint64_t{256} << 20;

}  // namespace

Result<std::unique_ptr<ModelInstance>> ModelInstance::Load(const ModelOptions& options) {
  std::unique_ptr<ModelInstance> instance(new ModelInstance(options));
  RETURN_IF_ERROR(instance->LoadParts());
  return instance;
}

SequenceState ModelInstance::NewSequence(const CachedPrefix& hit, std::span<const BatchRow> prompt,
                                         const PrefillOptions& prefill) {
  const auto prompt_len = static_cast<int64_t>(prompt.size());
  CHECK_LE(hit.len, prompt_len - KeptRows(config_, prefill, prompt_len));
  std::vector<int32_t> classes;
  if (ngram_layout_) {
    const int64_t first = std::max<int64_t>(0, hit.replay.start - layout_->shape().ngram_look_back);
    for (int64_t pos = first; pos < hit.replay.start; ++pos) {
      classes.push_back(ClassOfRow(*ngram_layout_, prompt[static_cast<size_t>(pos)]));
    }
  }
  SequenceState state = SequenceState::FromPrefix(hit, classes, *layout_, *pool_);
  BeginPrompt(state, prefill, prompt_len);
  return state;
}

int64_t ModelInstance::weight_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : checkpoint_->tensors()) {
    bytes += static_cast<int64_t>(tensor.view.bytes.size());
  }
  return bytes;
}

Status ModelInstance::LoadParts() {
  ASSIGN_OR_RETURN(config_, ModelConfig::Load(options_.dir));
  const Path weights_dir = options_.weights_dir.empty() ? options_.dir : options_.weights_dir;
  ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(weights_dir, options_.on_file));
  options_.on_file = nullptr;  // what it refers to need not live longer
  checkpoint_ = std::move(checkpoint);
  // A checkpoint without any tensor of the draft head runs without it.
  if (!checkpoint_->HasDraftHead()) config_.DropDraftHead();
  RETURN_IF_ERROR(checkpoint_->Validate(SpecsOf(config_)));
  weights_ = ModelWeights::Bind(*checkpoint_, config_);
  if (const Path path = options_.dir / "tokenizer.json"; FileExists(path)) {
    ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::Load(path));
    tokenizer_ = std::move(tokenizer);
    if (tokenizer_->vocab_size() > config_.vocab_size) {
      return CorruptData(fmt::format("{}: found {} tokens, expected at most vocab_size, {}",
                                     path.string(), tokenizer_->vocab_size(), config_.vocab_size));
    }
  }
  if (!config_.ngram_layers.empty()) RETURN_IF_ERROR(LoadNgramMemory());
  experts_ = MapExperts(*checkpoint_, {.num_layers = config_.num_layers,
                                       .num_experts = config_.num_experts,
                                       .num_draft_blocks = config_.num_draft_blocks,
                                       .num_draft_experts = config_.draft_num_experts});
  ASSIGN_OR_RETURN(const KernelTable* kernels, SelectKernels(options_.isa));
  if (options_.isa.empty() && !SlowerPathNote().empty()) LogWarning(SlowerPathNote());
  const int threads = options_.threads > 0 ? options_.threads : ReadMachineLimits().cpus;
  context_ = std::make_unique<ExecContext>(*kernels, threads);
  RETURN_IF_ERROR(AllocateMemory());
  identity_ = {.fingerprint = FingerprintOf(*checkpoint_, config_),
               .numerics_id = std::string(NumericsId(options_.numerics))};
  transformer_ = std::make_unique<Transformer>(
      TransformerParts{.config = &config_,
                       .weights = &*weights_,
                       .ngram_layout = ngram_layout_ ? &*ngram_layout_ : nullptr,
                       .experts = experts_.get(),
                       .ngram_tables = ngram_tables_.get(),
                       .numerics = options_.numerics,
                       .released_index_keys = options_.released_index_keys});
  return Status::Ok();
}

Status ModelInstance::LoadNgramMemory() {
  const Path weights_dir = options_.weights_dir.empty() ? options_.dir : options_.weights_dir;
  const Path given = weights_dir / "engram.json";
  if (FileExists(given)) {
    ASSIGN_OR_RETURN(const std::string json, ReadFile(given, kMaxNgramFileBytes));
    Result<NgramLayout> layout = NgramLayout::Parse(config_, json);
    if (!layout.ok()) return std::move(layout).status().WithContext(given.string());
    ngram_layout_ = *std::move(layout);
  } else if (tokenizer_) {
    ASSIGN_OR_RETURN(std::vector<int32_t> classes, TokenClasses(*tokenizer_));
    classes.resize(static_cast<size_t>(config_.vocab_size), 0);
    ASSIGN_OR_RETURN(ngram_layout_, NgramLayout::Derive(config_, std::move(classes)));
  } else {
    return NotFound(fmt::format(
        "{}: found neither engram.json nor tokenizer.json, expected one for the n-gram memory",
        options_.dir.string()));
  }
  ngram_tables_ = MapNgramTables(*checkpoint_, config_.ngram_layers);
  return Status::Ok();
}

Status ModelInstance::AllocateMemory() {
  const KvShape shape = Transformer::ShapeOf(config_, options_.numerics);
  layout_.emplace(shape);
  const int64_t budget = options_.memory > 0
                             ? options_.memory
                             : static_cast<int64_t>(ReadMachineLimits().memory_bytes);
  ASSIGN_OR_RETURN(
      plan_, PlanMemory(SizesOf(config_, *layout_), {.budget = budget,
                                                     .kv_cache = options_.kv_cache_memory,
                                                     .max_model_len = options_.max_model_len,
                                                     .max_sequences = options_.max_sequences,
                                                     .max_batch_rows = options_.max_batch_rows,
                                                     .threads = context_->num_threads()}));
  layout_.emplace(shape, plan_.max_model_len);
  // Blocks and scratch cost address space until they are written.
  Result<BlockPool> pool =
      BlockPool::Create(std::max<int64_t>(layout_->block_bytes(), 1), plan_.num_blocks);
  if (!pool.ok()) return std::move(pool).status();
  pool_.emplace(*std::move(pool));
  set_aside_.emplace(plan_.set_aside);
  context_->scratch().Reserve(static_cast<size_t>(
      StepScratchBytes(config_, *layout_,
                       {.rows = plan_.max_batch_rows,
                        .sequences = std::min(plan_.max_batch_rows, plan_.max_sequences),
                        .max_len = plan_.max_model_len,
                        .threads = context_->num_threads()})));
  return Status::Ok();
}

}  // namespace deepinfer
