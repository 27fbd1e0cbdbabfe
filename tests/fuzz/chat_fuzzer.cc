// Messages and answers from anywhere: an error or a result, and what comes from outside never
// becomes template text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chat.h"
#include "tokenizer/completion.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const deepinfer::ThinkingMode mode :
       {deepinfer::ThinkingMode::kChat, deepinfer::ThinkingMode::kThinking}) {
    (void)deepinfer::ParseCompletion(text, mode);
    const auto messages = deepinfer::ParseMessages(text);
    if (!messages.ok()) continue;
    const auto prompt = deepinfer::RenderChat(*messages, {.mode = mode});
    if (!prompt.ok()) continue;
    size_t images = 0;
    const std::string joined = prompt->Text();
    const std::string_view image = "<｜deepseek_image｜>";
    for (size_t at = joined.find(image); at != std::string::npos; at = joined.find(image, at + 1)) {
      ++images;
    }
    if (images != prompt->images.size()) std::abort();
  }
  return 0;
}
