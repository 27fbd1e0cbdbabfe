// The text of a tokenizer.json with all bytes, a few merges and the required control tokens: small
// enough that a fuzzer can load it again and again.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer/byte_alphabet.h"

namespace deepinfer {

inline std::string SmallTokenizerJson() {
  using nlohmann::ordered_json;
  ordered_json vocab = ordered_json::object();
  int id = 0;
  for (int byte = 0; byte < 256; ++byte) vocab[SpellByte(static_cast<uint8_t>(byte))] = id++;
  ordered_json merges = ordered_json::array();
  for (const auto& [left, right] : {std::pair("a", "b"), std::pair("b", "a"), std::pair("ab", "ab"),
                                    std::pair("Ġ", "a"), std::pair("Ã", "©")}) {
    vocab[std::string(left) + right] = id++;
    merges.push_back(std::string(left) + " " + right);
  }
  ordered_json added = ordered_json::array();
  for (const char* content :
       {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>",
        "<｜System｜>", "<think>", "</think>", "｜DSML｜", "<｜deepseek_image｜>"}) {
    added.push_back({{"id", id++}, {"content", content}, {"special", false}});
  }
  ordered_json splits = ordered_json::array();
  for (const char* regex :
       {R"(\p{N}{1,3})", R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|\s+(?!\S)|\s+)"}) {
    splits.push_back({{"type", "Split"},
                      {"pattern", {{"Regex", regex}}},
                      {"behavior", "Isolated"},
                      {"invert", false}});
  }
  splits.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  const ordered_json file = {
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", splits}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}},
  };
  return file.dump();
}

}  // namespace deepinfer
