#include "inspect/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

std::string_view KindName(LayerKind kind) {
  switch (kind) {
    case LayerKind::kWindow:
      return "window";
    case LayerKind::kFull:
      return "full";
    case LayerKind::kReindex:
      return "reindex";
    case LayerKind::kReuse:
      return "reuse";
  }
  return "?";
}

std::string ConfigText(const ModelConfig& c) {
  std::string text = fmt::format(
      "model        deepseek_v41: {} layers ({} encoder, {} decoder), hidden {}, vocabulary {}, "
      "context {}\n",
      c.num_layers, c.first_decoder_layer(), c.num_layers - c.first_decoder_layer(), c.hidden_size,
      Grouped(c.vocab_size), Grouped(c.max_position_embeddings));
  text += fmt::format(
      "attention    {} heads of {} ({} rotate), query rank {}, output {} groups of rank {}, window "
      "{}\n",
      c.num_heads, c.head_dim, c.rope_dim, c.q_lora_rank, c.o_groups, c.o_lora_rank, c.window_size);
  text += fmt::format("selection    {} index heads of {}, best {} entries", c.index_num_heads,
                      c.index_head_dim, c.index_top_k);
  if (c.candidate_source_layer >= 0) {
    text += fmt::format("; candidates from layer {}: {} blocks of {}", c.candidate_source_layer,
                        c.candidate_top_blocks, c.candidate_block_size);
  }
  text +=
      fmt::format("\nexperts      {} of {} routed + 1 shared, inner {}; {} residual streams\n",
                  c.num_experts_per_token, c.num_experts, c.moe_intermediate_size, c.num_streams);
  for (size_t i = 0; i < c.ngram_layers.size(); ++i) {
    text += fmt::format("{}layer {}: {} rows of {}, {} read per token\n",
                        i == 0 ? "n-grams      " : "             ", c.ngram_layers[i],
                        Grouped(c.ngram_table_rows[i]), c.ngram_head_dim, c.ngram_row_count());
  }
  if (c.num_draft_blocks > 0) {
    text += fmt::format("draft head   {} blocks propose {} tokens, {} of {} experts\n",
                        c.num_draft_blocks, c.draft_len, c.draft_num_experts_per_token,
                        c.draft_num_experts);
  }
  if (c.has_vision) {
    text += fmt::format(
        "vision       {} layers, hidden {}, patches of {}, at most {} tokens an image\n",
        c.vision.num_layers, c.vision.hidden_size, c.vision.patch_size,
        Grouped(c.vision.max_image_tokens));
  }
  return text;
}

std::string LayerText(const LayerGroup& g) {
  const std::string range =
      g.first == g.last ? fmt::format("{}", g.first) : fmt::format("{}-{}", g.first, g.last);
  std::string text =
      fmt::format("  {:<7}{:<9}{:<9}", range, g.decoder ? "decoder" : "encoder", KindName(g.kind));
  switch (g.kind) {
    case LayerKind::kWindow:
      break;
    case LayerKind::kFull:
      text += fmt::format("ratio {}, own KV, keys and selection", g.ratio);
      break;
    case LayerKind::kReindex:
      text += fmt::format("ratio {}, KV and keys of layer {}, own selection", g.ratio, g.kv_source);
      break;
    case LayerKind::kReuse:
      text += fmt::format("ratio {}, KV of layer {}, selection of layer {}", g.ratio, g.kv_source,
                          g.index_source);
      break;
  }
  if (g.candidate_source) text += "; names the candidates";
  if (g.ngram)
    text += text.ends_with(' ') ? "n-gram memory before it" : "; n-gram memory before it";
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string PartsText(const InspectReport& report) {
  std::string text =
      fmt::format("tensors\n  {:<24}{:>9}{:>19}{:>19}\n", "part", "tensors", "bytes", "per token");
  for (const PartReport& part : report.parts) {
    if (part.tensors == 0) continue;
    text += fmt::format("  {:<24}{:>9}{:>19}{:>19}\n", PartName(part.part), Grouped(part.tensors),
                        Grouped(part.bytes), Grouped(part.bytes_per_token));
  }
  text += fmt::format("  {:<24}{:>9}{:>19}{:>19}\n", "total", Grouped(report.num_tensors()),
                      Grouped(report.num_bytes()), Grouped(report.bytes_per_token()));
  if (report.files) {
    text += fmt::format("  {} tensors in {} file(s), {} bytes: types and shapes as expected\n",
                        Grouped(report.files->tensors), report.files->files,
                        Grouped(report.files->bytes));
  } else {
    text += "  no weights here: these are the tensors that the configuration calls for\n";
  }
  return text;
}

// A whole number without a fraction, others with one digit.
std::string Plain(double value) {
  const auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? fmt::format("{}", whole)
                                             : fmt::format("{:.1f}", value);
}

std::string CacheText(const CacheReport& cache) {
  std::string text = "cache\n";
  text += fmt::format(
      "  {} bytes of cache per token: an entry is a KV row of {} and an index key of {} bytes\n",
      Plain(cache.bytes_per_token), cache.kv_row_bytes, cache.index_key_bytes);
  text += fmt::format("  {} bytes per block of 128 tokens\n", Grouped(cache.block_bytes));
  text += fmt::format("  {} bytes per sequence, whatever its length (window rows of {} bytes)\n",
                      Grouped(cache.sequence_bytes), cache.window_row_bytes);
  return text;
}

std::string ShareText(int64_t resident, int64_t bytes) {
  if (resident == bytes) return "all of it stays in memory";
  return fmt::format("{} of it in memory ({:.0f} %), the rest is read from disk",
                     ShortBytes(resident),
                     100.0 * static_cast<double>(resident) / static_cast<double>(bytes));
}

std::string PlanText(const MemoryPlan& plan) {
  std::string text = fmt::format("memory budget of {}\n", ShortBytes(plan.budget));
  const auto line = [&](std::string_view what, int64_t bytes, const std::string& note) {
    if (bytes == 0) return;
    text += fmt::format("  {:<26}{:>10}  {}\n", what, ShortBytes(bytes), note);
  };
  line("process", plan.process, "tokenizer, indices, tables");
  line("steps", plan.step, fmt::format("scratch of {} rows", Grouped(plan.max_batch_rows)));
  line("sequences", plan.sequences,
       fmt::format("fixed state of {} in flight", Grouped(plan.max_sequences)));
  line("KV cache", plan.kv_cache,
       fmt::format("{} blocks of {} tokens; a sequence may have {}", Grouped(plan.num_blocks),
                   kBlockTokens, Grouped(plan.max_model_len)));
  line("sequences set aside", plan.set_aside, "at most");
  line("anonymous, together", plan.anonymous(), "");
  line("weights, always read", plan.dense, "stay in memory");
  line("weights, experts", plan.experts, ShareText(plan.experts_resident, plan.experts));
  line("weights, tables", plan.tables, ShareText(plan.tables_resident, plan.tables));
  return text;
}

std::string MemoryText(const Result<MemoryPlan>& plan) {
  if (plan.ok()) return PlanText(*plan);
  return fmt::format("memory\n  does not start: {}\n", plan.status().message());
}

std::string MachineText(const InspectReport& report) {
  return fmt::format("runs on\n  {:<26}CPU, {} kernels, {} thread(s)\n", "every layer",
                     report.machine.kernels, report.machine.threads);
}

Json MemoryJson(const Result<MemoryPlan>& plan) {
  if (!plan.ok()) return {{"error", plan.status().message()}};
  return {{"budget", plan->budget},
          {"max_model_len", plan->max_model_len},
          {"max_sequences", plan->max_sequences},
          {"max_batch_rows", plan->max_batch_rows},
          {"num_blocks", plan->num_blocks},
          {"anonymous", plan->anonymous()},
          {"process", plan->process},
          {"step", plan->step},
          {"sequences", plan->sequences},
          {"kv_cache", plan->kv_cache},
          {"set_aside", plan->set_aside},
          {"dense", plan->dense},
          {"experts", plan->experts},
          {"experts_resident", plan->experts_resident},
          {"tables", plan->tables},
          {"tables_resident", plan->tables_resident}};
}

Json LayerJson(const LayerGroup& g) {
  Json json = {{"first", g.first},
               {"last", g.last},
               {"half", g.decoder ? "decoder" : "encoder"},
               {"kind", KindName(g.kind)},
               {"ratio", g.ratio}};
  if (g.kind != LayerKind::kWindow) {
    json["kv_source"] = g.kv_source;
    json["index_source"] = g.index_source;
  }
  json["candidate_source"] = g.candidate_source;
  json["ngram_memory"] = g.ngram;
  return json;
}

Json ConfigJson(const ModelConfig& c) {
  return {{"num_layers", c.num_layers},
          {"hidden_size", c.hidden_size},
          {"vocab_size", c.vocab_size},
          {"max_position_embeddings", c.max_position_embeddings},
          {"num_heads", c.num_heads},
          {"head_dim", c.head_dim},
          {"window_size", c.window_size},
          {"index_top_k", c.index_top_k},
          {"num_experts", c.num_experts},
          {"num_experts_per_token", c.num_experts_per_token},
          {"num_streams", c.num_streams},
          {"ngram_layers", c.ngram_layers},
          {"ngram_table_rows", c.ngram_table_rows},
          {"num_draft_blocks", c.num_draft_blocks},
          {"draft_len", c.draft_len},
          {"vision", c.has_vision}};
}

Json PartsJson(const InspectReport& report) {
  Json parts = Json::array();
  for (const PartReport& part : report.parts) {
    parts.push_back({{"part", PartName(part.part)},
                     {"tensors", part.tensors},
                     {"bytes", part.bytes},
                     {"bytes_per_token", part.bytes_per_token}});
  }
  return parts;
}

}  // namespace

std::string RenderText(const InspectReport& report) {
  std::string text = ConfigText(report.config) + "\nlayers\n";
  for (const LayerGroup& group : report.layers) text += LayerText(group);
  return text + "\n" + PartsText(report) + "\n" + CacheText(report.cache) + "\n" +
         MemoryText(report.memory) + "\n" + MachineText(report);
}

std::string RenderJson(const InspectReport& report) {
  Json layers = Json::array();
  for (const LayerGroup& group : report.layers) layers.push_back(LayerJson(group));
  const CacheReport& cache = report.cache;
  Json json = {{"config", ConfigJson(report.config)},
               {"layers", layers},
               {"parts", PartsJson(report)},
               {"tensors", report.num_tensors()},
               {"bytes", report.num_bytes()},
               {"bytes_per_token", report.bytes_per_token()},
               {"files", nullptr},
               {"cache",
                {{"bytes_per_token", cache.bytes_per_token},
                 {"kv_row_bytes", cache.kv_row_bytes},
                 {"index_key_bytes", cache.index_key_bytes},
                 {"window_row_bytes", cache.window_row_bytes},
                 {"block_bytes", cache.block_bytes},
                 {"sequence_bytes", cache.sequence_bytes}}},
               {"memory", MemoryJson(report.memory)},
               {"machine",
                {{"device", "cpu"},
                 {"kernels", report.machine.kernels},
                 {"threads", report.machine.threads},
                 {"memory_budget", report.machine.memory}}}};
  if (report.files) {
    json["files"] = {{"count", report.files->files},
                     {"tensors", report.files->tensors},
                     {"bytes", report.files->bytes}};
  }
  return json.dump(2) + "\n";
}

}  // namespace deepinfer
