#include "engine/answer_channel.h"

#include <algorithm>

#include "base/check.h"
#include "engine/loop_board.h"

namespace deepinfer {
namespace {

double Seconds(AnswerChannel::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

AnswerChannel::AnswerChannel(int64_t id, Parts parts, std::shared_ptr<LoopBoard> board)
    : id_(id), parts_(std::move(parts)), board_(std::move(board)) {
  CHECK(parts_.sampling.seed.has_value());
  text_.emplace(*parts_.tokenizer, parts_.limits);
  answer_.seed = *parts_.sampling.seed;
  answer_.prompt_len = parts_.prompt_len;
}

bool AnswerChannel::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

bool AnswerChannel::HasNews() const {
  return !piece_.text.empty() || !piece_.tokens.empty() || piece_.prompt_done > prompt_done_read_;
}

std::optional<AnswerPiece> AnswerChannel::Next(std::optional<Clock::time_point> deadline) {
  std::optional<AnswerPiece> piece;
  int64_t read = 0;
  {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return HasNews() || ended_; };
    if (!deadline) {
      changed_.wait(lock, ready);
    } else if (*deadline > Clock::time_point::min()) {
      changed_.wait_until(lock, *deadline, ready);
    }
    if (!HasNews()) return std::nullopt;
    piece = std::move(piece_);
    prompt_done_read_ = piece->prompt_done;
    piece_ = {.prompt_done = prompt_done_read_};
    read = std::ssize(piece->tokens);
  }
  const int64_t before = num_read_.fetch_add(read);
  if (num_sent_.load() - before >= parts_.max_unread) board_->Wake();
  return piece;
}

Result<Answer> AnswerChannel::Wait() {
  if (!unbounded_.exchange(true)) board_->Wake();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_; });
  if (!error_.ok()) return error_;
  return std::move(answer_);
}

bool AnswerChannel::Cancel() { return End(FinishReason::kCancelled); }

bool AnswerChannel::End(FinishReason reason) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    piece_.text += text_->End(reason);
    Finish(Clock::now());
  }
  Tell(true);
  return true;
}

void AnswerChannel::Fail(Status status) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    error_ = std::move(status);
    ended_ = true;
  }
  Tell(true);
}

void AnswerChannel::Start(Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  start_ = at;
}

void AnswerChannel::AddPrefill(int64_t done) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    piece_.prompt_done = done;
  }
  Tell(false);
}

void AnswerChannel::AddToken(const ChosenToken& token, Clock::time_point at) {
  bool ends = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (answer_.tokens.empty()) {
      first_token_ = at;
      answer_.prefill_seconds = Seconds(at - start_);
    }
    answer_.tokens.push_back(token.token);
    piece_.tokens.push_back(token.token);
    if (parts_.sampling.num_logprobs >= 0) {
      answer_.num_alternatives = static_cast<int>(token.top.size());
      answer_.logprobs.push_back(token.logprob);
      piece_.logprobs.push_back(token.logprob);
      for (const TokenLogprob& top : token.top) {
        answer_.alternatives.push_back({.token = top.token, .logprob = top.logprob});
        piece_.alternatives.push_back(answer_.alternatives.back());
      }
    }
    piece_.text += text_->Add(token.token);
    ends = text_->finished();
    if (ends) Finish(at);
  }
  Tell(ends);
}

void AnswerChannel::Finish(Clock::time_point at) {
  ended_ = true;
  answer_.text = std::move(text_->text());
  answer_.finish_reason = text_->finish_reason();
  answer_.stop_string = text_->stop_string();
  if (!answer_.tokens.empty()) answer_.decode_seconds = Seconds(at - first_token_);
  text_.reset();
}

void AnswerChannel::Tell(bool ends) {
  changed_.notify_all();
  if (parts_.on_ready) parts_.on_ready(id_);
  if (ends) board_->Ended(id_);
}

}  // namespace deepinfer
