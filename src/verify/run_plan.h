// One way of many to compute the same sequences, as data: how prompts are cut, what runs beside
// them, on which kernels, what interrupts them.  Two plans that promise the same bits are compared
// by FirstDifference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/model_instance.h"

namespace deepinfer {

struct KernelTable;

// Sequences that a run and the comparison after it may hold at once (ModelOptions::max_sequences).
inline constexpr int64_t kRunSequences = 12;

// A prompt, then tokens that are fed one at a time whatever the logits say.
struct TokenStream {
  std::vector<BatchRow> rows;  // text, positions from 0
  int64_t prompt_len = 0;      // the rest is decoded
};

// Random tokens of a seed.
TokenStream RandomStream(int64_t prompt_len, int64_t decode_len, int64_t vocab_size, uint64_t seed);

// What happens to a sequence when it reaches a position.
struct Interruption {
  enum class Kind : uint8_t {
    kRestore,    // to bytes and back
    kFork,       // a copy goes on, the original with other tokens
    kRollback,   // other tokens, then as if they had not been
    kSetAside,   // out of the pool as bytes, and back
    kRecompute,  // dropped, and computed again from its tokens in one step
  };
  Kind kind = Kind::kRestore;
  int64_t pos = 0;
  int64_t others = 0;  // other tokens, at most kMaxRollback
};

struct RunPlan {
  std::string name;
  PrefillOptions prefill = PrefillOptions::Full();
  int64_t chunk = 0;                        // most prompt rows of a Forward; 0: as many as it takes
  std::vector<int> order;                   // of the streams in one batch; empty: each alone
  std::vector<Interruption> interruptions;  // ascending positions
  int64_t hit = 0;                          // leading tokens from a cache
  ReplayRecord::Kind windows = ReplayRecord::Kind::kNone;  // how the hit's come back
  const KernelTable* kernels = nullptr;                    // null: the model's own
  int threads = 0;                                         // 0: the model's own
};

// What a run leaves of one stream.
struct StreamBits {
  int64_t first_row = 0;      // of the logits; a prefill mode keeps only the last rows of a prompt
  std::vector<float> logits;  // [rows from first_row on, vocab_size]
  std::string after_prompt;   // the state's bytes, without its replay record
  std::string after_decode;
};

// Runs the streams to their ends.  Errors are those of Forward and of restoring.
Result<std::vector<StreamBits>> RunStreams(ModelInstance& model,
                                           const std::vector<TokenStream>& streams,
                                           const RunPlan& plan);

// Where two runs of the same streams part: the row, the logit or the part of the state, and both
// values; nothing when they are equal in every bit that both have.
std::optional<std::string> FirstDifference(ModelInstance& model,
                                           const std::vector<StreamBits>& found,
                                           const std::vector<StreamBits>& expected);

}  // namespace deepinfer
