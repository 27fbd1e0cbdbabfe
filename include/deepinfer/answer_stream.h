// The answer to one request while it is made.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "deepinfer/answer.h"
#include "deepinfer/status.h"

namespace deepinfer {

class AnswerChannel;

// Move-only.  Letting go of a stream whose answer is not complete cancels the request.  May outlive
// the engine, whose Close ends the answer.
//
// The engine goes no more than EngineOptions::max_unread_tokens ahead of the reader: then the
// request pauses, keeping its place and its memory, and other requests go on.
//
// Cancel and ended may be called from any thread; Next and Wait from one thread at a time.
class AnswerStream {
 public:
  // Made by Engine::Submit.
  explicit AnswerStream(std::shared_ptr<AnswerChannel> channel);
  AnswerStream(AnswerStream&&) noexcept = default;
  AnswerStream& operator=(AnswerStream&& other) noexcept;
  AnswerStream(const AnswerStream&) = delete;
  AnswerStream& operator=(const AnswerStream&) = delete;
  ~AnswerStream();

  // Blocks until there is more of the answer.  Nothing once all of it has been handed out, however
  // the request ended.
  std::optional<AnswerPiece> Next();
  // The same, but nothing also when the time is over: then ended() is false.
  std::optional<AnswerPiece> NextWithin(std::chrono::milliseconds time);
  // Whether the request has ended; pieces may be left to read.
  bool ended() const;

  // Blocks until the request has ended.  The whole answer, whether or not pieces of it were read,
  // or why there is none.  Reads nothing: what is unread need not be.  At most once.
  Result<Answer> Wait();

  // Ends the request with what there is; the stream has ended when this returns.  Nothing happens
  // to a request that has ended.
  void Cancel();

 private:
  std::shared_ptr<AnswerChannel> channel_;  // shared with the engine: either may live longer
};

}  // namespace deepinfer
