#include "engine/callback_thread.h"

namespace deepinfer {

CallbackThread::CallbackThread() : thread_([this] { Run(); }) {}

CallbackThread::~CallbackThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_cv_.notify_one();
  thread_.join();
}

void CallbackThread::Add(std::shared_ptr<AnswerChannel> channel, RequestCallbacks callbacks) {
  const int64_t id = channel->id();
  auto reader = std::make_unique<Reader>();
  reader->channel = std::move(channel);
  reader->callbacks = std::move(callbacks);
  const std::lock_guard lock(mutex_);
  readers_[id] = std::move(reader);
}

void CallbackThread::Remove(int64_t id) {
  const std::lock_guard lock(mutex_);
  readers_.erase(id);
}

void CallbackThread::Ready(int64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = readers_.find(id);
  if (found == readers_.end() || found->second->queued) return;
  found->second->queued = true;
  ready_.push_back(found->second.get());
  ready_cv_.notify_one();
}

bool CallbackThread::Serve(Reader& reader) {
  // Asked first: what comes between the two is followed by another Ready.
  const bool ended = reader.channel->ended();
  while (const std::optional<AnswerPiece> piece = reader.channel->Take()) {
    if (reader.callbacks.on_piece) reader.callbacks.on_piece(*piece);
  }
  if (ended && reader.callbacks.on_end) reader.callbacks.on_end(reader.channel->Wait());
  return ended;
}

void CallbackThread::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ready_cv_.wait(lock, [&] { return stopping_ || !ready_.empty(); });
    if (ready_.empty()) return;
    Reader* reader = ready_.front();
    ready_.pop_front();
    reader->queued = false;
    lock.unlock();
    const bool done = Serve(*reader);
    lock.lock();
    if (!done) continue;
    std::erase(ready_, reader);
    readers_.erase(reader->channel->id());
  }
}

}  // namespace deepinfer
