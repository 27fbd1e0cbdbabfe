#include "apps/command_logits.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numeric>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/load_model.h"
#include "engine/scoring.h"
#include "sampling/sampler.h"
#include "verify/trace_recorder.h"
#include "weights/safetensors_writer.h"

namespace deepinfer {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

struct Flags {
  std::string ids;
  std::string text;
  std::string out;
  std::string positions = "all";
  std::string perplexity;
  int64_t chunk = 0;
  bool trace = false;
  bool logprobs = false;
};

// "5,9,300"
Result<std::vector<int64_t>> ParseList(const char* flag, std::string_view list) {
  std::vector<int64_t> values;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (error != std::errc() || end != item.data() + item.size()) {
      return InvalidArgument(
          fmt::format("{}: found '{}', expected integers separated by commas", flag, item));
    }
    values.push_back(value);
    if (comma == std::string_view::npos) return values;
    list.remove_prefix(comma + 1);
  }
}

Result<std::vector<int32_t>> TokensOf(const Flags& flags, const ModelInstance& model) {
  if (flags.ids.empty()) return model.tokenizer()->Encode(flags.text);
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids, ParseList("--ids", flags.ids));
  std::vector<int32_t> tokens;
  for (const int64_t id : ids) {
    if (id < 0 || id >= model.config().vocab_size) {
      return InvalidArgument(
          fmt::format("--ids: found {}, expected 0 to {}", id, model.config().vocab_size - 1));
    }
    tokens.push_back(static_cast<int32_t>(id));
  }
  return tokens;
}

Result<std::vector<int64_t>> PositionsOf(const Flags& flags, int64_t count) {
  if (flags.positions == "last") return std::vector<int64_t>{count - 1};
  if (flags.positions == "all") {
    std::vector<int64_t> all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> positions, ParseList("--positions", flags.positions));
  if (!std::is_sorted(positions.begin(), positions.end(), std::less_equal<>())) {
    return InvalidArgument(
        fmt::format("--positions: found '{}', expected ascending positions", flags.positions));
  }
  return positions;
}

// Tensors of the output file, kept until all shapes are known.
struct OutputTensors {
  std::vector<TensorSpec> specs;
  std::vector<std::span<const std::byte>> data;

  template <typename T>
  void Add(std::string name, DType dtype, std::vector<int64_t> shape,
           const std::vector<T>& values) {
    specs.push_back({std::move(name), dtype, std::move(shape)});
    data.push_back(std::as_bytes(std::span(values)));
  }
  Status WriteTo(const Path& path) const {
    ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, specs));
    for (const std::span<const std::byte> bytes : data) RETURN_IF_ERROR(writer.Write(bytes));
    return writer.Commit();
  }
};

void AddTrace(const TraceRecorder& recorder, int64_t rows, OutputTensors& out) {
  for (const auto& [name, traced] : recorder.floats()) {
    out.Add("trace." + name, DType::kF32, {rows, traced.cols}, traced.values);
  }
  for (const auto& [name, traced] : recorder.ints()) {
    out.Add("trace." + name, DType::kI32, {rows, traced.cols}, traced.values);
  }
}

void ToLogprobs(std::span<float> logits) {
  const float log_total = logits[0] - LogprobOf(logits, 0);
  for (float& value : logits) value -= log_total;
}

Status WriteLogits(const Flags& flags, const CommandContext& context, ModelInstance& model) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, TokensOf(flags, model));
  ASSIGN_OR_RETURN(const std::vector<int64_t> positions,
                   PositionsOf(flags, static_cast<int64_t>(tokens.size())));
  const int64_t vocab = model.config().vocab_size;
  TraceRecorder recorder;
  std::vector<float> all;
  all.reserve(positions.size() * static_cast<size_t>(vocab));
  const auto keep = [&](int64_t position, std::span<const float> logits) {
    all.insert(all.end(), logits.begin(), logits.end());
    const std::span<float> kept = std::span(all).last(logits.size());
    if (flags.logprobs) ToLogprobs(kept);
    if (!flags.out.empty()) return Status::Ok();
    const int32_t best = ArgMax(logits);
    return context.out.Write(
        fmt::format("{} {} {:.6f}\n", position, best, LogprobOf(logits, best)));
  };
  RETURN_IF_ERROR(ScoreTokens(model,
                              {.tokens = tokens,
                               .positions = positions,
                               .chunk = flags.chunk,
                               .observer = flags.trace ? &recorder : nullptr},
                              keep));
  if (flags.out.empty()) return Status::Ok();
  OutputTensors out;
  out.Add(flags.logprobs ? "logprobs" : "logits", DType::kF32,
          {static_cast<int64_t>(positions.size()), vocab}, all);
  out.Add("positions", DType::kI64, {static_cast<int64_t>(positions.size())}, positions);
  out.Add("ids", DType::kI32, {static_cast<int64_t>(tokens.size())}, tokens);
  if (flags.trace) AddTrace(recorder, static_cast<int64_t>(tokens.size()), out);
  return out.WriteTo(flags.out);
}

// Mean negative log-likelihood of positions [begin, end) of the text.
struct Bucket {
  int64_t begin = 0;
  int64_t end = 0;
  double sum = 0;
  int64_t count = 0;
};

// 0, 1, 3, 7, ...: each bucket is twice as long as the one before, from 128 on.
std::vector<Bucket> BucketsFor(int64_t count) {
  std::vector<Bucket> buckets;
  for (int64_t begin = 0, end = 128; begin < count; begin = end, end *= 2) {
    buckets.push_back({.begin = begin, .end = std::min(end, count)});
  }
  return buckets;
}

Status WritePerplexity(const Flags& flags, const CommandContext& context, ModelInstance& model) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.perplexity, kMaxTextBytes));
  ASSIGN_OR_RETURN(std::vector<int32_t> tokens, model.tokenizer()->Encode(text));
  tokens.insert(tokens.begin(), model.config().bos_token);
  if (tokens.size() < 2) {
    return InvalidArgument(fmt::format("{}: found no text, expected some", flags.perplexity));
  }
  const auto window = static_cast<size_t>(model.max_model_len());
  if (tokens.size() > window) {
    LogWarning(fmt::format("{}: {} tokens; only the first {} fit the context", flags.perplexity,
                           tokens.size(), window));
    tokens.resize(window);
  }
  // Position p predicts token p+1.
  const auto count = static_cast<int64_t>(tokens.size()) - 1;
  std::vector<int64_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<Bucket> buckets = BucketsFor(count);
  Bucket total{.begin = 0, .end = count};
  const auto add = [&](int64_t position, std::span<const float> logits) {
    const double loss = -LogprobOf(logits, tokens[static_cast<size_t>(position) + 1]);
    auto bucket = std::find_if(buckets.begin(), buckets.end(),
                               [&](const Bucket& b) { return position < b.end; });
    for (Bucket* b : {&*bucket, &total}) {
      b->sum += loss;
      ++b->count;
    }
    return Status::Ok();
  };
  RETURN_IF_ERROR(
      ScoreTokens(model, {.tokens = tokens, .positions = positions, .chunk = flags.chunk}, add));
  RETURN_IF_ERROR(context.out.Write("positions            tokens  nats/token  perplexity\n"));
  buckets.push_back(total);
  for (const Bucket& b : buckets) {
    const double mean = b.sum / static_cast<double>(b.count);
    RETURN_IF_ERROR(
        context.out.Write(fmt::format("{:>8} .. {:<8} {:>7} {:>11.4f} {:>11.3f}\n", b.begin,
                                      b.end - 1, b.count, mean, std::exp(mean))));
  }
  return Status::Ok();
}

Status Run(const Flags& flags, const CommandContext& context) {
  const int sources = !flags.ids.empty() + !flags.text.empty() + !flags.perplexity.empty();
  if (sources != 1) {
    return InvalidArgument("expected one of --ids, --text and --perplexity");
  }
  if (flags.trace && flags.out.empty()) {
    return InvalidArgument("--trace: expected --out, where the trace goes");
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ModelInstance> model,
      flags.ids.empty() ? LoadModelWithTokenizer(context.global) : LoadModel(context.global));
  const InterruptScope interrupt(model->context());
  return flags.perplexity.empty() ? WriteLogits(flags, context, *model)
                                  : WritePerplexity(flags, context, *model);
}

}  // namespace

void AddLogitsCommand(CommandRegistry& registry) {
  auto flags = std::make_shared<Flags>();
  CLI::App& app = registry.Add(
      {.name = "logits",
       .summary = "teacher-forced logits of given tokens, traces, perplexity",
       .examples = {"deepinfer logits --ids 5,9,300 --positions last",
                    "deepinfer logits --text \"Hello\" --out hello.safetensors --trace",
                    "deepinfer logits --perplexity book.txt"}},
      [flags](const CommandContext& context) { return Run(*flags, context); });
  app.add_option("--ids", flags->ids, "token ids, separated by commas");
  app.add_option("--text", flags->text, "text to tokenise");
  app.add_option(
      "--out", flags->out,
      "safetensors file: logits [positions, vocab], positions, ids, trace.*; without it, "
      "each position's best token and its logprob go to stdout");
  app.add_option("--positions", flags->positions, "all, last, or N,M,...")->capture_default_str();
  app.add_flag("--trace", flags->trace, "also per-layer values, selections and expert choices");
  app.add_flag("--logprobs", flags->logprobs, "log-softmax instead of logits");
  app.add_option("--perplexity", flags->perplexity,
                 "text file; loss by position instead of logits");
  app.add_option("--chunk", flags->chunk, "rows of one pass (0: the engine's choice)")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace deepinfer
