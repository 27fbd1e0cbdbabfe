// A tokenizer.json from anywhere: loading it must end in a tokenizer or an error, and a tokenizer
// must encode and decode without a loss.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "small_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace {

using deepinfer::Tokenizer;

void LoadAndUse(std::string_view json, std::string_view text) {
  const deepinfer::Result<Tokenizer> tokenizer = Tokenizer::Parse(json);
  if (!tokenizer.ok()) return;
  for (const bool match : {true, false}) {
    const auto tokens = tokenizer->Encode(text, {.match_added_tokens = match});
    if (!tokens.ok()) continue;  // not UTF-8, or a pattern that needs too many steps
    const std::string decoded = tokenizer->Decode(*tokens);
    // Only a file that merges tokens into one of another spelling could break this, and merged
    // spellings are concatenations.
    if (decoded != text) std::abort();
  }
}

}  // namespace

// The first two bytes choose a place in a good file, the rest overwrites it there; the rest alone
// is tried as a file of its own, and as a text for the good file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string good = deepinfer::SmallTokenizerJson();
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  LoadAndUse(rest, "ab é 123");
  LoadAndUse(good, rest);
  std::string changed = good;
  const size_t place = (size_t{data[0]} * 256 + data[1]) % good.size();
  changed.replace(place, std::min(rest.size(), good.size() - place), rest);
  LoadAndUse(changed, "abab 12345 caf\xC3\xA9 <think>");
  return 0;
}
