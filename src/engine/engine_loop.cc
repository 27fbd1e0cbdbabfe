#include "engine/engine_loop.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace deepinfer {
namespace {

// Times by op, most first.
void NoteOps(const OpProfile& profile, std::vector<OpTime>& ops) {
  ops.clear();
  for (int i = 0; i < static_cast<int>(Op::kCount); ++i) {
    const auto op = static_cast<Op>(i);
    const OpProfile::Entry& entry = profile.of(op);
    if (entry.calls == 0) continue;
    ops.push_back({.name = OpName(op), .seconds = entry.seconds, .calls = entry.calls});
  }
  std::sort(ops.begin(), ops.end(),
            [](const OpTime& a, const OpTime& b) { return a.seconds > b.seconds; });
}

}  // namespace

// The place of one request among the steps: hears the batch engine and passes it on.
class EngineLoop::Seat : public RequestListener {
 public:
  Seat(std::shared_ptr<AnswerChannel> channel, EngineLoop& loop)
      : channel_(std::move(channel)), loop_(loop) {}

  bool HasRoom() const override { return channel_->HasRoom(); }
  void OnStart() override { loop_.events_.AddStart(channel_); }
  void OnPrefill(int64_t done, int64_t /*total*/) override {
    loop_.events_.AddPrefill(channel_, done);
    loop_.step_prompt_tokens_ += done - prompt_done_;
    prompt_done_ = done;
  }
  void OnToken(const ChosenToken& token) override {
    channel_->NoteSent();
    ++loop_.step_output_tokens_;
    loop_.events_.AddToken(channel_, token);
  }
  void OnFinish(Result<GenerationResult> result) override {
    // An answer ends by its last token; an error, by itself.
    if (!result.ok()) loop_.events_.AddFailure(channel_, std::move(result).status());
    loop_.left_.push_back(channel_->id());
  }

  BatchEngine::RequestId request = 0;

 private:
  std::shared_ptr<AnswerChannel> channel_;
  EngineLoop& loop_;
  int64_t prompt_done_ = 0;
};

EngineLoop::EngineLoop(ModelInstance& model, const LoopOptions& options)
    : model_(model),
      options_(options),
      board_(std::make_shared<LoopBoard>(model.context())),
      batch_(model, options.limits) {
  CHECK_GE(options.max_unread_tokens, 1);
  callbacks_.emplace();
  text_.emplace();
  steps_ = std::thread([this] { RunSteps(); });
}

EngineLoop::~EngineLoop() { Close(std::chrono::milliseconds(0)); }

Result<std::shared_ptr<AnswerChannel>> EngineLoop::Submit(
    GenerationRequest request, std::optional<RequestCallbacks> callbacks) {
  RETURN_IF_ERROR(CheckRequest(model_, request));
  CHECK(!request.state && !request.keep_state);
  request.make_text = false;
  if (!request.sampling.seed) request.sampling.seed = DrawSeed();
  AnswerChannel::Parts parts{.tokenizer = model_.tokenizer(),
                             .limits = LimitsOf(model_, request),
                             .sampling = request.sampling,
                             .prompt_len = std::ssize(request.prompt),
                             .max_unread = options_.max_unread_tokens,
                             .on_ready = {}};
  const int64_t id = next_id_.fetch_add(1);
  if (callbacks) parts.on_ready = [this](int64_t ready) { callbacks_->Ready(ready); };
  auto channel = std::make_shared<AnswerChannel>(id, std::move(parts), board_);
  if (callbacks) callbacks_->Add(channel, *std::move(callbacks));
  if (!board_->Post({.channel = channel, .request = std::move(request)})) {
    if (callbacks) callbacks_->Remove(id);
    return Cancelled("the engine is closing and takes no more requests");
  }
  return channel;
}

int64_t EngineLoop::Close(std::chrono::milliseconds grace) {
  if (!steps_.joinable()) return 0;
  board_->Close();
  AwaitIdle(Clock::now() + grace);
  int64_t cut_short = 0;
  for (const std::shared_ptr<AnswerChannel>& channel : board_->Open()) {
    cut_short += channel->Cancel() ? 1 : 0;
  }
  // All have ended now, but whoever ended one may not have told the board yet.
  CHECK(AwaitIdle(Clock::now() + std::chrono::hours(1)));
  board_->Stop();
  steps_.join();
  text_.reset();
  callbacks_.reset();
  return cut_short;
}

void EngineLoop::RunSteps() {
  if (options_.profile) model_.context().set_profile(&profile_);
  bool runnable = false;
  Clock::time_point last_end;
  while (board_->Await(runnable, posted_, ended_)) {
    const Clock::time_point begin = runnable ? last_end : Clock::now();
    TakeIn();
    DropEnded();
    RecordQueues();
    if (!board_->BeginStep()) {
      runnable = false;
      continue;
    }
    const bool stopped = !batch_.Step().ok();
    board_->EndStep();
    LeaveSeats();
    runnable = batch_.last_step().rows > 0;
    last_end = Clock::now();
    RecordQueues();
    if (runnable) RecordStep(last_end - begin, stopped);
    // Last: who sees an answer end finds its tokens among the figures.
    text_->Post(events_);
  }
}

void EngineLoop::TakeIn() {
  for (Submitted& submitted : posted_) {
    auto seat = std::make_unique<Seat>(submitted.channel, *this);
    const Result<BatchEngine::RequestId> request =
        batch_.Submit(std::move(submitted.request), *seat);
    CHECK(request.ok());  // checked by Submit
    seat->request = *request;
    seats_[submitted.channel->id()] = std::move(seat);
  }
  posted_.clear();
}

void EngineLoop::DropEnded() {
  for (const int64_t id : ended_) {
    const auto found = seats_.find(id);
    if (found != seats_.end()) batch_.Cancel(found->second->request);
  }
  LeaveSeats();
}

void EngineLoop::LeaveSeats() {
  for (const int64_t id : left_) seats_.erase(id);
  left_.clear();
}

void EngineLoop::RecordQueues() {
  const std::lock_guard lock(figures_mutex_);
  figures_.num_running = batch_.num_running();
  figures_.num_waiting = batch_.num_waiting();
  figures_.kv_bytes = model_.kv_bytes_in_use();
}

void EngineLoop::RecordStep(Clock::duration elapsed, bool stopped) {
  const BatchEngine::StepTimes& times = batch_.last_step();
  const std::lock_guard lock(figures_mutex_);
  if (stopped) {
    ++figures_.num_stopped_steps;
    return;
  }
  const double seconds = std::chrono::duration<double>(elapsed).count();
  const double between = seconds - times.forward_seconds - times.choose_seconds;
  const auto threads = static_cast<double>(model_.context().num_threads());
  ++figures_.num_steps;
  figures_.prompt_tokens += std::exchange(step_prompt_tokens_, 0);
  figures_.output_tokens += std::exchange(step_output_tokens_, 0);
  figures_.step_seconds += seconds;
  figures_.sampling_seconds += times.choose_seconds;
  figures_.between_seconds += between;
  figures_.idle_thread_seconds +=
      threads * (between + times.choose_seconds) - times.choose_work_seconds;
  figures_.compute_thread_seconds += threads * seconds;
  const auto size = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(times.rows - 1)));
  StepsOfSize& alike = figures_.steps_by_size[std::min(size, figures_.steps_by_size.size() - 1)];
  ++alike.num_steps;
  alike.tokens += times.rows;
  alike.seconds += seconds;
  figures_.last_step_tokens = times.rows;
  figures_.last_step_sequences = times.sequences;
  figures_.last_step_seconds = seconds;
  if (options_.profile) NoteOps(profile_, figures_.ops);
}

EngineStatistics EngineLoop::Statistics() const {
  EngineStatistics figures;
  {
    const std::lock_guard lock(figures_mutex_);
    figures = figures_;
  }
  const LoopBoard::Counts counts = board_->counts();
  figures.num_waiting += counts.posted;
  figures.num_accepted = counts.accepted;
  figures.num_finished = counts.accepted - counts.open;
  figures.kv_bytes_max = model_.kv_bytes();
  return figures;
}

}  // namespace deepinfer
