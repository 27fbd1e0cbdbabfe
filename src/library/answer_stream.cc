#include "deepinfer/answer_stream.h"

#include "engine/answer_channel.h"

namespace deepinfer {

AnswerStream::AnswerStream(std::shared_ptr<AnswerChannel> channel) : channel_(std::move(channel)) {}

AnswerStream& AnswerStream::operator=(AnswerStream&& other) noexcept {
  if (this == &other) return *this;
  if (channel_) channel_->Cancel();
  channel_ = std::move(other.channel_);
  return *this;
}

AnswerStream::~AnswerStream() {
  if (channel_) channel_->Cancel();
}

std::optional<AnswerPiece> AnswerStream::Next() { return channel_->Next(std::nullopt); }

std::optional<AnswerPiece> AnswerStream::NextWithin(std::chrono::milliseconds time) {
  return channel_->Next(AnswerChannel::Clock::now() + time);
}

bool AnswerStream::ended() const { return channel_->ended(); }

Result<Answer> AnswerStream::Wait() { return channel_->Wait(); }

void AnswerStream::Cancel() { channel_->Cancel(); }

}  // namespace deepinfer
