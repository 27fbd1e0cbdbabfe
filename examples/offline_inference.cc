// Answers any number of prompts at a time, each as soon as it can be, and prints them in order.
//
//   offline_inference [--model DIR] PROMPT...
#include <deepinfer/engine.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

int Fail(const deepinfer::Status& status) {
  std::fprintf(stderr, "offline_inference: %s\n", status.message().c_str());
  return 1;
}

deepinfer::Result<deepinfer::AnswerStream> Ask(deepinfer::Engine& engine,
                                               const std::string& prompt) {
  deepinfer::Result<std::vector<int32_t>> tokens =
      engine.EncodeChat({.messages = {{.role = "user", .content = prompt}}});
  if (!tokens.ok()) return tokens.status();
  return engine.Submit({.prompt = *std::move(tokens), .sampling = {.temperature = 0}});
}

// Writes the answer while it comes.
deepinfer::Status Show(deepinfer::AnswerStream& stream) {
  while (const std::optional<deepinfer::AnswerPiece> piece = stream.Next()) {
    std::fwrite(piece->text.data(), 1, piece->text.size(), stdout);
    std::fflush(stdout);
  }
  std::puts("");
  return stream.Wait().status();
}

}  // namespace

int main(int argc, char** argv) {
  deepinfer::EngineOptions options{.model_dir = NANO_MODEL_DIR};
  std::vector<std::string> prompts;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--model" && i + 1 < argc) {
      options.model_dir = argv[++i];
    } else {
      prompts.emplace_back(argv[i]);
    }
  }
  deepinfer::Result<deepinfer::Engine> engine = deepinfer::Engine::Open(options);
  if (!engine.ok()) return Fail(engine.status());

  std::vector<deepinfer::AnswerStream> streams;  // all run at the same time
  for (const std::string& prompt : prompts) {
    deepinfer::Result<deepinfer::AnswerStream> stream = Ask(*engine, prompt);
    if (!stream.ok()) return Fail(stream.status());
    streams.push_back(*std::move(stream));
  }
  for (deepinfer::AnswerStream& stream : streams) {
    if (const deepinfer::Status status = Show(stream); !status.ok()) return Fail(status);
  }
  const deepinfer::EngineStatistics figures = engine->Statistics();
  std::fprintf(stderr, "%lld tokens in %lld steps, %.1f a second\n",
               static_cast<long long>(figures.output_tokens),
               static_cast<long long>(figures.num_steps), figures.output_tokens_per_second());
  return 0;
}
