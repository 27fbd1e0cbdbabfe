#include "engine/text_thread.h"

#include <iterator>
#include <span>

namespace deepinfer {

void StepEvents::AddToken(const Channel& channel, const ChosenToken& token) {
  events_.push_back({.kind = Kind::kToken,
                     .channel = channel,
                     .at = Clock::now(),
                     .token = token.token,
                     .logprob = token.logprob,
                     .num_top = token.top.size()});
  top_.insert(top_.end(), token.top.begin(), token.top.end());
}

void StepEvents::Clear() {
  events_.clear();
  top_.clear();
}

void StepEvents::Append(StepEvents& later) {
  if (events_.empty()) {
    std::swap(*this, later);
  } else {
    events_.insert(events_.end(), std::make_move_iterator(later.events_.begin()),
                   std::make_move_iterator(later.events_.end()));
    top_.insert(top_.end(), later.top_.begin(), later.top_.end());
  }
  later.Clear();
}

void StepEvents::Deliver() const {
  std::span<const TokenLogprob> top = top_;
  for (const Event& event : events_) {
    switch (event.kind) {
      case Kind::kStart:
        event.channel->Start(event.at);
        break;
      case Kind::kPrefill:
        event.channel->AddPrefill(event.prefill_done);
        break;
      case Kind::kToken:
        event.channel->AddToken(
            {.token = event.token, .logprob = event.logprob, .top = top.first(event.num_top)},
            event.at);
        top = top.subspan(event.num_top);
        break;
      case Kind::kFailure:
        event.channel->Fail(event.status);
        break;
    }
  }
}

TextThread::TextThread() : thread_([this] { Run(); }) {}

TextThread::~TextThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_cv_.notify_one();
  thread_.join();
}

void TextThread::Post(StepEvents& events) {
  if (events.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    posted_.Append(events);
  }
  posted_cv_.notify_one();
}

void TextThread::Run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      posted_cv_.wait(lock, [&] { return stopping_ || !posted_.empty(); });
      if (posted_.empty()) return;
      std::swap(posted_, delivering_);
    }
    delivering_.Deliver();
    delivering_.Clear();
  }
}

}  // namespace deepinfer
