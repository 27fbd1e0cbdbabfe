#include "bench/model_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/random.h"
#include "engine/generator.h"
#include "model/transformer.h"

namespace deepinfer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPrefillRepeats = 3;

std::vector<BatchRow> RandomRows(int64_t count, int64_t vocab_size, uint64_t seed) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = Philox(seed, {static_cast<uint32_t>(i), 0, 0, 0})[0];
    tokens.push_back(static_cast<int32_t>(word % static_cast<uint64_t>(vocab_size)));
  }
  return TextRows(tokens);
}

class ModelBench {
 public:
  ModelBench(ModelInstance& model, const Roofline& roofline, const ModelBenchOptions& options,
             const std::function<void(const StepResult&)>& on_result)
      : model_(model), roofline_(roofline), options_(options), on_result_(on_result) {}

  Status Run() {
    for (const int64_t len : options_.prompt_lens) RETURN_IF_ERROR(Prefill(len));
    for (const int64_t context : options_.contexts) {
      for (const int64_t sequences : options_.sequences) {
        RETURN_IF_ERROR(Decode(context, sequences));
      }
    }
    return Status::Ok();
  }

 private:
  // All rows of a prompt, in chunks; logits of the last row.
  Status Feed(SequenceState& state, std::span<const BatchRow> prompt) {
    BeginPrompt(state, options_.prefill, static_cast<int64_t>(prompt.size()));
    for (size_t begin = 0; begin < prompt.size(); begin += kMaxBatchRows) {
      const size_t count = std::min<size_t>(kMaxBatchRows, prompt.size() - begin);
      const SequenceSlice slice{
          .state = &state, .num_rows = static_cast<int64_t>(count), .prefill = options_.prefill};
      const auto last = static_cast<int32_t>(count) - 1;
      const bool ends = begin + count == prompt.size();
      RETURN_IF_ERROR(Forward({.rows = prompt.subspan(begin, count),
                               .slices = {&slice, 1},
                               .logit_rows = {&last, ends ? size_t{1} : size_t{0}}}));
    }
    return Status::Ok();
  }

  Status Forward(const ForwardBatch& batch) {
    logits_.resize(batch.logit_rows.size() * static_cast<size_t>(model_.config().vocab_size));
    return model_.transformer().Forward(model_.context(), batch, {.logits = logits_.data()});
  }

  // Times `steps` runs of the body, the warm-up excluded, and reports them.
  Status Report(StepResult result, int steps, const std::function<Status()>& body) {
    RETURN_IF_ERROR(body());
    model_.context().set_profile(&result.profile);
    std::vector<double> times;
    Status status;
    for (int i = 0; i < steps && status.ok(); ++i) {
      const Clock::time_point start = Clock::now();
      status = body();
      times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    model_.context().set_profile(nullptr);
    RETURN_IF_ERROR(std::move(status));
    std::sort(times.begin(), times.end());
    const double seconds = times[times.size() / 2];
    const Work work = WorkOf(result.profile, steps);
    const double dram = MeasureDram(model_.context());
    const double by_memory = work.bytes / (dram * 1e9);
    const double by_units = work.macs / (roofline_.bf16() * 1e9);
    result.ms = seconds * 1e3;
    result.tokens_per_second = static_cast<double>(result.rows) / seconds;
    result.gmacs = work.macs / seconds / 1e9;
    result.gbytes = work.bytes / seconds / 1e9;
    result.limit = by_memory > by_units ? "dram" : "bf16";
    result.percent_of_limit = 100 * std::max(by_memory, by_units) / seconds;
    result.steps = steps;
    on_result_(result);
    return Status::Ok();
  }

  struct Work {
    double macs;
    double bytes;
  };
  static Work WorkOf(const OpProfile& profile, int steps) {
    Work work{};
    for (int op = 0; op < static_cast<int>(Op::kCount); ++op) {
      work.macs += static_cast<double>(profile.of(static_cast<Op>(op)).macs) / steps;
      work.bytes += static_cast<double>(profile.of(static_cast<Op>(op)).weight_bytes) / steps;
    }
    return work;
  }

  Status Prefill(int64_t len) {
    const std::vector<BatchRow> prompt = RandomRows(len, model_.config().vocab_size, 1);
    return Report({.name = "prefill", .context = 0, .rows = len}, kPrefillRepeats, [&] {
      SequenceState state = model_.NewSequence();
      return Feed(state, prompt);
    });
  }

  Status Decode(int64_t context, int64_t sequences) {
    std::vector<SequenceState> states;
    for (int64_t s = 0; s < sequences; ++s) {
      states.push_back(model_.NewSequence());
      const auto seed = static_cast<uint64_t>(s + 1);
      RETURN_IF_ERROR(Feed(states.back(), RandomRows(context, model_.config().vocab_size, seed)));
    }
    std::vector<SequenceSlice> slices;
    std::vector<BatchRow> rows(static_cast<size_t>(sequences));
    std::vector<int32_t> wanted;
    for (int64_t s = 0; s < sequences; ++s) {
      slices.push_back(
          {.state = &states[static_cast<size_t>(s)], .num_rows = 1, .prefill = options_.prefill});
      wanted.push_back(static_cast<int32_t>(s));
    }
    uint32_t step = 0;
    return Report({.name = "decode", .sequences = sequences, .context = context, .rows = sequences},
                  options_.decode_steps, [&] {
                    for (size_t s = 0; s < rows.size(); ++s) {
                      const uint32_t word = Philox(99, {step, static_cast<uint32_t>(s), 0, 0})[0];
                      rows[s].token = static_cast<int32_t>(
                          word % static_cast<uint64_t>(model_.config().vocab_size));
                      rows[s].pos = states[s].len();
                    }
                    ++step;
                    return Forward({.rows = rows, .slices = slices, .logit_rows = wanted});
                  });
  }

  ModelInstance& model_;
  const Roofline& roofline_;
  const ModelBenchOptions& options_;
  const std::function<void(const StepResult&)>& on_result_;
  std::vector<float> logits_;
};

}  // namespace

Status BenchModel(ModelInstance& model, const Roofline& roofline, const ModelBenchOptions& options,
                  const std::function<void(const StepResult&)>& on_result) {
  return ModelBench(model, roofline, options, on_result).Run();
}

std::string OpShares(const OpProfile& profile) {
  std::vector<Op> ops;
  for (int op = 0; op < static_cast<int>(Op::kCount); ++op) ops.push_back(static_cast<Op>(op));
  std::sort(ops.begin(), ops.end(),
            [&](Op a, Op b) { return profile.of(a).seconds > profile.of(b).seconds; });
  const double total = profile.TotalSeconds();
  std::string text;
  for (const Op op : ops) {
    const double share = total > 0 ? 100 * profile.of(op).seconds / total : 0;
    if (share < 0.05) break;
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : " | ", OpName(op), share);
  }
  return text;
}

}  // namespace deepinfer
