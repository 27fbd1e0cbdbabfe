#include "engine/loop_board.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

bool LoopBoard::Post(Submitted submitted) {
  const std::lock_guard lock(mutex_);
  if (closing_) return false;
  ++num_accepted_;
  open_[submitted.channel->id()] = {.channel = submitted.channel};
  posted_.push_back(std::move(submitted));
  step_.notify_one();
  return true;
}

std::shared_ptr<AnswerChannel> LoopBoard::Find(int64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(id);
  return found == open_.end() ? nullptr : found->second.channel;
}

bool LoopBoard::AwaitIdle(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return idle_.wait_until(lock, deadline, [&] { return open_.empty(); });
}

void LoopBoard::Close() {
  const std::lock_guard lock(mutex_);
  closing_ = true;
}

std::vector<std::shared_ptr<AnswerChannel>> LoopBoard::Open() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<AnswerChannel>> channels;
  for (const auto& [id, entry] : open_) channels.push_back(entry.channel);
  return channels;
}

void LoopBoard::Stop() {
  const std::lock_guard lock(mutex_);
  CHECK(closing_ && open_.empty());
  stopping_ = true;
  step_.notify_one();
}

LoopBoard::Counts LoopBoard::counts() const {
  const std::lock_guard lock(mutex_);
  return {.accepted = num_accepted_, .open = std::ssize(open_), .posted = std::ssize(posted_)};
}

void LoopBoard::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  step_.notify_one();
}

void LoopBoard::Ended(int64_t id) {
  std::shared_ptr<AnswerChannel> last;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(id);
  CHECK(found != open_.end());
  last = std::move(found->second.channel);
  if (found->second.handed_out) {
    ended_.push_back(id);
    if (--num_handed_out_ == 0 && stepping_) context_.RequestStop();
  } else {
    std::erase_if(posted_, [&](const Submitted& posted) { return posted.channel->id() == id; });
  }
  open_.erase(found);
  woken_ = true;
  step_.notify_one();
  if (open_.empty()) idle_.notify_all();
}

bool LoopBoard::Await(bool runnable, std::vector<Submitted>& posted, std::vector<int64_t>& ended) {
  std::unique_lock lock(mutex_);
  step_.wait(lock, [&] { return runnable || woken_ || stopping_ || !posted_.empty(); });
  woken_ = false;
  posted.clear();
  ended.clear();
  std::swap(posted, posted_);
  std::swap(ended, ended_);
  for (const Submitted& submitted : posted) {
    open_.at(submitted.channel->id()).handed_out = true;
    ++num_handed_out_;
  }
  return !stopping_;
}

bool LoopBoard::BeginStep() {
  const std::lock_guard lock(mutex_);
  stepping_ = num_handed_out_ > 0;
  return stepping_;
}

void LoopBoard::EndStep() {
  const std::lock_guard lock(mutex_);
  stepping_ = false;
  context_.ClearStop();
}

}  // namespace deepinfer
