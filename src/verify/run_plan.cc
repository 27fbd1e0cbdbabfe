#include "verify/run_plan.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "model/prefix_hit.h"

namespace deepinfer {
namespace {

// Logits of one stream that are kept; rows before them show in the state.
constexpr int64_t kMaxLogitBytes = int64_t{64} << 20;

// First row whose logits every plan of this mode has.
int64_t FirstLogitRow(const TokenStream& stream, const RunPlan& plan, int64_t vocab_size) {
  const auto total = static_cast<int64_t>(stream.rows.size());
  const int64_t fitting = total - kMaxLogitBytes / (vocab_size * int64_t{4});
  const int64_t last = stream.prompt_len - 1;
  int64_t first = 0;
  if (plan.prefill.mode == PrefillMode::kExact) first = last;
  if (plan.prefill.mode == PrefillMode::kCompact || plan.prefill.mode == PrefillMode::kMask) {
    first = stream.prompt_len - plan.prefill.keep;
  }
  return std::max({int64_t{0}, plan.hit, first, std::min(fitting, last)});
}

// One stream on its way.
class StreamRun {
 public:
  StreamRun(ModelInstance& model, const TokenStream& stream, const RunPlan& plan)
      : model_(model),
        stream_(stream),
        plan_(plan),
        state_(model.NewSequence()),
        next_interruption_(plan.interruptions.begin()) {
    bits_.first_row = FirstLogitRow(stream, plan, model.config().vocab_size);
    const int64_t rows = static_cast<int64_t>(stream.rows.size()) - bits_.first_row;
    bits_.logits.reserve(static_cast<size_t>(rows * model.config().vocab_size));
  }

  // With a hit: after the whole prefill of the hit's tokens, as a cache would have kept it.
  Status Begin(ExecContext& context) {
    if (plan_.hit == 0) {
      BeginPrompt(state_, plan_.prefill, stream_.prompt_len);
      return Status::Ok();
    }
    const TokenStream donor{.rows = {stream_.rows.begin(), stream_.rows.begin() + plan_.hit},
                            .prompt_len = plan_.hit};
    const RunPlan plan{.name = "the cached prefix"};
    StreamRun cached(model_, donor, plan);
    RETURN_IF_ERROR(cached.Begin(context));
    while (!cached.Done()) RETURN_IF_ERROR(cached.StepAlone(context, false));
    const std::vector<BlockRef> blocks = cached.state_.ShareBlocks(plan_.hit);
    const WindowSnapshot windows = cached.state_.CaptureWindows();
    const bool snapshot = plan_.windows == ReplayRecord::Kind::kSnapshot;
    state_ = model_.NewSequence({.len = plan_.hit,
                                 .blocks = blocks,
                                 .windows = snapshot ? &windows : nullptr,
                                 .replay = PlanReplay(model_.config(), plan_.windows, plan_.hit)},
                                Prompt(), plan_.prefill);
    return Status::Ok();
  }

  bool Done() const { return state_.len() == static_cast<int64_t>(stream_.rows.size()); }

  // Rows of the next Forward, at most `most`.
  std::span<const BatchRow> NextRows(int64_t most) const {
    const int64_t pos = state_.len();
    int64_t count = 1;
    if (pos < stream_.prompt_len) {
      count = std::min(stream_.prompt_len - pos, most);
      if (plan_.chunk > 0) count = std::min(count, plan_.chunk);
    }
    if (next_interruption_ != plan_.interruptions.end() && next_interruption_->pos > pos) {
      count = std::min(count, next_interruption_->pos - pos);
    }
    return std::span(stream_.rows).subspan(static_cast<size_t>(pos), static_cast<size_t>(count));
  }

  // Of these rows, the ones whose logits are kept, as rows of a batch that begins them at
  // `batch_row`.
  void AppendLogitRows(std::span<const BatchRow> rows, int64_t batch_row,
                       std::vector<int32_t>& wanted) const {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].pos >= bits_.first_row) {
        wanted.push_back(static_cast<int32_t>(batch_row + static_cast<int64_t>(i)));
      }
    }
  }

  SequenceSlice SliceOf(std::span<const BatchRow> rows) {
    return {
        .state = &state_, .num_rows = static_cast<int64_t>(rows.size()), .prefill = plan_.prefill};
  }

  // After a Forward: takes its logits and does what is due at the position.
  Status Advance(ExecContext& context, std::span<const float> logits) {
    bits_.logits.insert(bits_.logits.end(), logits.begin(), logits.end());
    while (next_interruption_ != plan_.interruptions.end() &&
           next_interruption_->pos <= state_.len()) {
      if (next_interruption_->pos == state_.len()) {
        RETURN_IF_ERROR(Interrupt(context, *next_interruption_));
      }
      ++next_interruption_;
    }
    if (state_.len() == stream_.prompt_len) bits_.after_prompt = StateBytes();
    return Status::Ok();
  }

  Status StepAlone(ExecContext& context, bool want_logits) {
    const std::span<const BatchRow> rows = NextRows(kMaxBatchRows);
    std::vector<int32_t> wanted;
    if (want_logits) AppendLogitRows(rows, 0, wanted);
    const SequenceSlice slice = SliceOf(rows);
    std::vector<float> logits(wanted.size() * static_cast<size_t>(model_.config().vocab_size));
    RETURN_IF_ERROR(model_.transformer().Forward(
        context, {.rows = rows, .slices = {&slice, 1}, .logit_rows = wanted},
        {.logits = logits.data()}));
    return Advance(context, logits);
  }

  StreamBits Finish() && {
    bits_.after_decode = StateBytes();
    return std::move(bits_);
  }

 private:
  std::span<const BatchRow> Prompt() const {
    return std::span(stream_.rows).first(static_cast<size_t>(stream_.prompt_len));
  }

  // How windows came back is part of the record of a run, not of what it computes.
  std::string StateBytes() {
    const ReplayRecord replay = std::exchange(state_.replay, {});
    std::string bytes = state_.Serialize(model_.identity());
    state_.replay = replay;
    return bytes;
  }

  Status Interrupt(ExecContext& context, const Interruption& what) {
    switch (what.kind) {
      case Interruption::Kind::kRestore: {
        const std::string bytes = state_.Serialize(model_.identity());
        ASSIGN_OR_RETURN(state_, model_.RestoreSequence(bytes));
        return Status::Ok();
      }
      case Interruption::Kind::kFork: {
        SequenceState fork = state_.Fork();
        RETURN_IF_ERROR(FeedOthers(context, what.others));
        state_ = std::move(fork);
        return Status::Ok();
      }
      case Interruption::Kind::kRollback:
        RETURN_IF_ERROR(FeedOthers(context, what.others));
        state_.Rollback(what.others);
        return Status::Ok();
      case Interruption::Kind::kSetAside: {
        ASSIGN_OR_RETURN(const SetAsideState bytes,
                         model_.set_aside().Keep(state_, model_.identity()));
        state_ = model_.NewSequence();  // the blocks are free meanwhile
        ASSIGN_OR_RETURN(state_, model_.RestoreSequence(bytes));
        return Status::Ok();
      }
      case Interruption::Kind::kRecompute:
        return Recompute(context);
    }
    return Status::Ok();
  }

  // Prompt rows as their prefill mode has them, then decoded ones, together.
  Status Recompute(ExecContext& context) {
    const auto rows = std::span(stream_.rows).first(static_cast<size_t>(state_.len()));
    state_ = model_.NewSequence();
    BeginPrompt(state_, plan_.prefill, stream_.prompt_len);
    for (size_t begin = 0; begin < rows.size(); begin += kMaxBatchRows) {
      const auto part = rows.subspan(begin, std::min(rows.size() - begin, size_t{kMaxBatchRows}));
      const SequenceSlice slice = SliceOf(part);
      RETURN_IF_ERROR(
          model_.transformer().Forward(context, {.rows = part, .slices = {&slice, 1}}, {}));
    }
    return Status::Ok();
  }

  // Tokens that are not the stream's, in one step.
  Status FeedOthers(ExecContext& context, int64_t count) {
    std::vector<BatchRow> rows;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t pos = state_.len() + i;
      rows.push_back(
          {.token = static_cast<int32_t>((pos * 7 + 3) % model_.config().vocab_size), .pos = pos});
    }
    if (rows.empty()) return Status::Ok();
    const SequenceSlice slice = SliceOf(rows);
    return model_.transformer().Forward(context, {.rows = rows, .slices = {&slice, 1}}, {});
  }

  ModelInstance& model_;
  const TokenStream& stream_;
  const RunPlan& plan_;
  SequenceState state_;
  std::vector<Interruption>::const_iterator next_interruption_;
  StreamBits bits_;
};

// One Forward over the next rows of every stream that is not done, in the plan's order.
Status StepTogether(ModelInstance& model, ExecContext& context, const std::vector<int>& order,
                    std::vector<StreamRun>& runs) {
  const int64_t most = kMaxBatchRows / static_cast<int64_t>(order.size());
  struct Part {
    StreamRun* run;
    size_t num_logits;
  };
  std::vector<Part> parts;
  std::vector<BatchRow> batch;
  std::vector<SequenceSlice> slices;
  std::vector<int32_t> wanted;
  for (const int stream : order) {
    StreamRun& run = runs[static_cast<size_t>(stream)];
    if (run.Done()) continue;
    const std::span<const BatchRow> rows = run.NextRows(most);
    const size_t before = wanted.size();
    run.AppendLogitRows(rows, static_cast<int64_t>(batch.size()), wanted);
    batch.insert(batch.end(), rows.begin(), rows.end());
    slices.push_back(run.SliceOf(rows));
    parts.push_back({&run, wanted.size() - before});
  }
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  std::vector<float> logits(wanted.size() * vocab);
  RETURN_IF_ERROR(model.transformer().Forward(
      context, {.rows = batch, .slices = slices, .logit_rows = wanted}, {.logits = logits.data()}));
  std::span<const float> left(logits);
  for (const Part& part : parts) {
    RETURN_IF_ERROR(part.run->Advance(context, left.first(part.num_logits * vocab)));
    left = left.subspan(part.num_logits * vocab);
  }
  return Status::Ok();
}

// A context of a plan's own does not hear the wish to stop.
Status CheckStop(ModelInstance& model) {
  return model.context().StopRequested() ? Cancelled("stopped between two steps") : Status::Ok();
}

bool AllDone(const std::vector<StreamRun>& runs) {
  return std::ranges::all_of(runs, [](const StreamRun& run) { return run.Done(); });
}

}  // namespace

TokenStream RandomStream(int64_t prompt_len, int64_t decode_len, int64_t vocab_size,
                         uint64_t seed) {
  TokenStream stream{.rows = {}, .prompt_len = prompt_len};
  for (int64_t pos = 0; pos < prompt_len + decode_len; ++pos) {
    const uint32_t word = Philox(seed, {static_cast<uint32_t>(pos), 0, 0, 0})[0];
    stream.rows.push_back(
        {.token = static_cast<int32_t>(word % static_cast<uint64_t>(vocab_size)), .pos = pos});
  }
  return stream;
}

Result<std::vector<StreamBits>> RunStreams(ModelInstance& model,
                                           const std::vector<TokenStream>& streams,
                                           const RunPlan& plan) {
  std::unique_ptr<ExecContext> own;
  if (plan.kernels != nullptr || plan.threads > 0) {
    own = std::make_unique<ExecContext>(
        plan.kernels != nullptr ? *plan.kernels : model.context().kernels(),
        plan.threads > 0 ? plan.threads : model.context().num_threads());
  }
  ExecContext& context = own ? *own : model.context();
  std::vector<StreamRun> runs;
  for (const TokenStream& stream : streams) runs.emplace_back(model, stream, plan);
  for (StreamRun& run : runs) RETURN_IF_ERROR(run.Begin(context));
  if (plan.order.empty()) {
    for (StreamRun& run : runs) {
      while (!run.Done()) {
        RETURN_IF_ERROR(CheckStop(model));
        RETURN_IF_ERROR(run.StepAlone(context, true));
      }
    }
  } else {
    CHECK_EQ(plan.order.size(), streams.size());
    while (!AllDone(runs)) {
      RETURN_IF_ERROR(CheckStop(model));
      RETURN_IF_ERROR(StepTogether(model, context, plan.order, runs));
    }
  }
  std::vector<StreamBits> bits;
  for (StreamRun& run : runs) bits.push_back(std::move(run).Finish());
  return bits;
}

}  // namespace deepinfer
