// DeepSeek-V4.1-Flash on this machine's processors: many requests at a time on one loaded model.
//
//   deepinfer::Result<deepinfer::Engine> engine = deepinfer::Engine::Open({.model_dir = dir});
//   deepinfer::Result<std::vector<int32_t>> prompt =
//       engine->EncodeChat({.messages = {{"user", "Hello!"}}});
//   deepinfer::Result<deepinfer::AnswerStream> stream = engine->Submit({.prompt = *prompt});
//   while (std::optional<deepinfer::AnswerPiece> piece = stream->Next()) std::cout << piece->text;
//
// The tokens of an answer depend on its request and seed only: not on what runs beside it, on the
// number of threads, on the machine, or on how fast it is read.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deepinfer/answer.h"
#include "deepinfer/answer_stream.h"
#include "deepinfer/request.h"
#include "deepinfer/statistics.h"
#include "deepinfer/status.h"

namespace deepinfer {

struct EngineOptions {
  enum class Arithmetic {
    kRelease,  // quantised activations and caches, as the model is meant to run
    kFp32,     // no activation is rounded: for checking
  };
  // How much of a prompt goes through the decoder half of the network.
  enum class Prefill {
    kFull,     // every layer on every token
    kExact,    // the same bits from less work
    kMask,     // the function of kCompact, computed in full
    kCompact,  // the last prefill_keep tokens only, as deployed
  };

  std::string model_dir{};       // a checkpoint as released
  int threads = 0;               // compute threads; 0: as many as the process may use
  int64_t memory_bytes = 0;      // budget; 0: what the process may use of the machine
  int64_t kv_memory_bytes = 0;   // of it, for KV blocks; 0: the engine's choice
  int64_t max_sequences = 16;    // requests in flight; the others wait
  int64_t max_model_len = 0;     // tokens of prompt and answer together; 0: what the model allows
  int64_t max_batch_tokens = 0;  // of one step; 0: the engine's choice
  int64_t step_time_budget_ms = 0;  // that prompts are cut for, as far as it is known; 0: none
  int64_t prefill_chunk = 0;  // most prompt tokens of one request in a step; 0: as many as fit
  Arithmetic arithmetic = Arithmetic::kRelease;
  Prefill prefill = Prefill::kCompact;
  int64_t prefill_keep = 140;        // of kMask and kCompact; at least the model's window
  int64_t max_unread_tokens = 1024;  // of an answer, before it pauses
  bool profile = false;              // fill EngineStatistics::ops
  std::string isa{};                 // scalar, avx2, avx512; empty: the best one
  // Called while the model is loaded, on the caller's thread: files opened, of all.
  std::function<void(int64_t done, int64_t total)> on_load{};
};

// Move-only handle of a loaded model and the threads that compute on it; the destructor is
// Close(0).  Every function may be called from any thread, but Close, move and destruction once
// and after all other calls.  Messages of errors say what was found and what was expected.
class Engine {
 public:
  using RequestId = int64_t;

  // Maps the checkpoint, plans its memory and starts the engine's threads.
  static Result<Engine> Open(const EngineOptions& options);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Takes a request in and returns at once.  An accepted request ends exactly once: with its
  // answer, cut short by a cancel, or with an error.  InvalidArgument for parameters out of range
  // or a prompt that leaves no room in the context; Cancelled once the engine is closing.
  Result<AnswerStream> Submit(Request request);
  Result<RequestId> Submit(Request request, RequestCallbacks callbacks);
  // Ends a request that was submitted with callbacks, unless it has ended.
  void Cancel(RequestId id);

  // Blocks until no accepted request is left, or the time is over.  Returns whether none is.
  bool WaitIdle(std::chrono::milliseconds time = std::chrono::hours(24 * 365));
  // Takes no more requests, lets those that run end by themselves within the grace, cancels the
  // others, and ends the threads.  All callbacks have returned when it does; streams stay readable.
  // Returns how many requests were cut short.
  int64_t Close(std::chrono::milliseconds grace = std::chrono::milliseconds(0));

  EngineStatistics Statistics() const;

  // Text as it is, with the token before the first one that the model expects, if the text does not
  // spell it itself.
  Result<std::vector<int32_t>> Encode(std::string_view text) const;
  // The prompt of a conversation.  Text of messages never becomes a control token.
  Result<std::vector<int32_t>> EncodeChat(const ChatPrompt& prompt) const;
  // Bytes that are not UTF-8 become U+FFFD.
  std::string Decode(std::span<const int32_t> tokens) const;

  // Tokens that prompt and answer may have together.
  int64_t max_model_len() const;
  int64_t vocab_size() const;
  // How memory is divided, in one line for a person; whether all weights have room in it.
  std::string MemoryPlan() const;
  bool all_weights_resident() const;
  // Names the checkpoint and the arithmetic: equal fingerprints give equal answers.
  std::string fingerprint() const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace deepinfer
