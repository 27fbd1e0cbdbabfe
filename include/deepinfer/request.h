// What is asked of an engine: values.  Every field has a default, so that an initialiser may name
// only some.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace deepinfer {

// How tokens are chosen.  What is absent is as the checkpoint recommends (generation_config.json;
// temperature 1 and top_p 0.95 without one).
struct SamplingOptions {
  std::optional<double> temperature{};                  // 0: greedy
  std::optional<int> top_k{};                           // 0: all
  std::optional<double> top_p{};                        // (0, 1]
  std::optional<double> min_p{};                        // [0, 1): relative to the most likely token
  std::optional<double> repetition_penalty{};           // > 0, on tokens of prompt and output
  std::optional<double> presence_penalty{};             // [-2, 2], on tokens of the output
  std::optional<double> frequency_penalty{};            // [-2, 2], per occurrence in the output
  std::vector<std::pair<int32_t, float>> logit_bias{};  // token, [-100, 100]
  std::optional<uint64_t> seed{};  // same request, same seed: same tokens; absent: drawn, reported
};

struct Request {
  std::vector<int32_t> prompt{};  // Engine::Encode or Engine::EncodeChat
  SamplingOptions sampling;
  std::vector<std::string> stop{};  // the answer ends before any of these
  int64_t max_tokens = 0;           // of the answer; 0: as many as the context allows
  bool ignore_eos = false;          // go on behind the end token
  int num_logprobs = -1;            // -1: none; n: the chosen token's and those of the n best ones
};

struct ChatMessage {
  std::string role{};  // "system", "user" or "assistant"
  std::string content{};
};

// A conversation that the model is to answer.
struct ChatPrompt {
  std::vector<ChatMessage> messages{};
  // Instead of them: a JSON list in the shape of the OpenAI API, with tools, tool calls and
  // reasoning_content.
  std::string messages_json{};
  bool thinking = false;  // let the model reason before it answers
  std::string effort{};   // of thinking: "1" to "100", low, high, xhigh, max; empty: the default
};

}  // namespace deepinfer
