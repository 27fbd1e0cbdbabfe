#include "library/engine_options.h"

#include <fmt/format.h>

#include <utility>

namespace deepinfer {
namespace {

Status ExpectAtLeast(int64_t least, std::string_view name, int64_t found) {
  if (found >= least) return Status::Ok();
  return InvalidArgument(fmt::format("{}: found {}, expected {} or more", name, found, least));
}

PrefillMode ModeOf(EngineOptions::Prefill prefill) {
  switch (prefill) {
    case EngineOptions::Prefill::kFull:
      return PrefillMode::kFull;
    case EngineOptions::Prefill::kExact:
      return PrefillMode::kExact;
    case EngineOptions::Prefill::kMask:
      return PrefillMode::kMask;
    case EngineOptions::Prefill::kCompact:
      break;
  }
  return PrefillMode::kCompact;
}

}  // namespace

Status CheckOptions(const EngineOptions& options) {
  if (options.model_dir.empty()) {
    return InvalidArgument("model_dir: found none, expected the directory of a checkpoint");
  }
  RETURN_IF_ERROR(ExpectAtLeast(0, "threads", options.threads));
  RETURN_IF_ERROR(ExpectAtLeast(0, "memory_bytes", options.memory_bytes));
  RETURN_IF_ERROR(ExpectAtLeast(0, "kv_memory_bytes", options.kv_memory_bytes));
  RETURN_IF_ERROR(ExpectAtLeast(1, "max_sequences", options.max_sequences));
  RETURN_IF_ERROR(ExpectAtLeast(0, "max_model_len", options.max_model_len));
  RETURN_IF_ERROR(ExpectAtLeast(0, "max_batch_tokens", options.max_batch_tokens));
  RETURN_IF_ERROR(ExpectAtLeast(0, "step_time_budget_ms", options.step_time_budget_ms));
  RETURN_IF_ERROR(ExpectAtLeast(0, "prefill_chunk", options.prefill_chunk));
  return ExpectAtLeast(1, "max_unread_tokens", options.max_unread_tokens);
}

ModelOptions ModelOptionsOf(const EngineOptions& options) {
  const bool fp32 = options.arithmetic == EngineOptions::Arithmetic::kFp32;
  return {.dir = options.model_dir,
          .numerics = fp32 ? Numerics::kFp32 : Numerics::kRelease,
          .isa = options.isa,
          .threads = options.threads,
          .memory = options.memory_bytes,
          .kv_cache_memory = options.kv_memory_bytes,
          .max_model_len = options.max_model_len,
          .max_sequences = options.max_sequences,
          .max_batch_rows = options.max_batch_tokens,
          .on_file = options.on_load};
}

LoopOptions LoopOptionsOf(const EngineOptions& options) {
  return {.limits = {.max_sequences = options.max_sequences,
                     .max_rows = options.max_batch_tokens,
                     .step_time_budget_ms = options.step_time_budget_ms},
          .max_unread_tokens = options.max_unread_tokens,
          .profile = options.profile};
}

PrefillOptions PrefillOptionsOf(const EngineOptions& options) {
  return {.mode = ModeOf(options.prefill), .keep = options.prefill_keep};
}

SamplingParams SamplingOver(SamplingParams recommended, const Request& request) {
  const SamplingOptions& given = request.sampling;
  SamplingParams params = std::move(recommended);
  params.temperature = given.temperature.value_or(params.temperature);
  params.top_k = given.top_k.value_or(params.top_k);
  params.top_p = given.top_p.value_or(params.top_p);
  params.min_p = given.min_p.value_or(params.min_p);
  params.repetition_penalty = given.repetition_penalty.value_or(params.repetition_penalty);
  params.presence_penalty = given.presence_penalty.value_or(params.presence_penalty);
  params.frequency_penalty = given.frequency_penalty.value_or(params.frequency_penalty);
  params.logit_bias = given.logit_bias;
  params.seed = given.seed;
  params.num_logprobs = request.num_logprobs;
  return params;
}

}  // namespace deepinfer
