#include "synth/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kImageToken = "<｜deepseek_image｜>";

constexpr std::string_view kLeading[] = {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>",
                                         "<｜▁pad▁｜>"};

constexpr std::string_view kTrailing[] = {"<｜System｜>",
                                          "<｜fim▁hole｜>",
                                          "<｜fim▁begin｜>",
                                          "<｜fim▁end｜>",
                                          "<｜User｜>",
                                          "<｜Assistant｜>",
                                          "<|EOT|>",
                                          "<think>",
                                          "</think>",
                                          "｜DSML｜",
                                          "<｜begin▁sys｜>",
                                          "<｜end▁sys｜>",
                                          "<｜latest_reminder｜>",
                                          "<｜action｜>",
                                          "<｜query｜>",
                                          "<｜authority｜>",
                                          "<｜domain｜>",
                                          "<｜task｜>",
                                          "<｜title｜>",
                                          "<｜answer｜>",
                                          "<｜search｜>",
                                          "<｜search▁begin｜>",
                                          "<｜search▁end｜>",
                                          "<｜extracted_url｜>",
                                          "<｜read_url｜>",
                                          "<｜end_of_query｜>",
                                          kImageToken,
                                          "<｜/point｜>",
                                          "<｜point｜>",
                                          "<｜/box｜>",
                                          "<｜box｜>",
                                          "<｜/ref｜>",
                                          "<｜ref｜>"};

constexpr int kNumLeading = static_cast<int>(std::size(kLeading));
constexpr int kNumTrailing = static_cast<int>(std::size(kTrailing));
constexpr int kFirstFiller = kNumLeading + 256;

// The three successive splits of the release.
constexpr const char* kSplits[] = {
    R"(\p{N}{1,3})", "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./"
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"};

std::string Utf8(uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

// The visible character that stands for a byte in byte-level vocabularies: itself where it is
// printable in Latin-1, else the next one from U+0100 on.
std::string SpellingOf(int byte) {
  const auto printable = [](int b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  if (printable(byte)) return Utf8(static_cast<uint32_t>(byte));
  uint32_t stand_in = 0x100;
  for (int b = 0; b < byte; ++b) stand_in += printable(b) ? 0 : 1;
  return Utf8(stand_in);
}

Json AddedToken(int32_t id, std::string_view content, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

Json PreTokenizerJson() {
  Json steps = Json::array();
  for (const char* split : kSplits) {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", split}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

int32_t TrailingId(int size, std::string_view content) {
  const auto at = std::find(std::begin(kTrailing), std::end(kTrailing), content);
  CHECK(at != std::end(kTrailing));
  return size - kNumTrailing + static_cast<int32_t>(at - std::begin(kTrailing));
}

}  // namespace

const int SynthVocabulary::kMinSize = kFirstFiller + kNumTrailing;

int32_t SynthVocabulary::image_token() const { return TrailingId(size_, kImageToken); }
int32_t SynthVocabulary::system_token() const { return TrailingId(size_, kTrailing[0]); }

std::string SynthVocabulary::TokenizerJson() const {
  CHECK_GE(size_, kMinSize);
  Json added = Json::array();
  Json vocab = Json::object();
  for (int id = 0; id < kNumLeading; ++id) {
    added.push_back(AddedToken(id, kLeading[id], true));
    vocab[kLeading[id]] = id;
  }
  for (int byte = 0; byte < 256; ++byte) vocab[SpellingOf(byte)] = kNumLeading + byte;
  // Objects that keep their order search by walking, which is too slow for a hundred thousand
  // fillers: those are written as text.
  std::string fillers;
  for (int id = kFirstFiller; id < size_ - kNumTrailing; ++id) {
    fillers += fmt::format(",\"{}t{}\":{}", SpellingOf(' '), id, id);
  }
  for (const std::string_view content : kTrailing) {
    added.push_back(AddedToken(TrailingId(size_, content), content, content == kImageToken));
  }
  std::string vocab_text = vocab.dump();
  vocab_text.pop_back();
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},)"
      R"("normalizer":{{"type":"Sequence","normalizers":[]}},"pre_tokenizer":{},)"
      R"("post_processor":null,"decoder":{{"type":"ByteLevel","add_prefix_space":true,)"
      R"("trim_offsets":true,"use_regex":true}},"model":{{"type":"BPE","dropout":null,)"
      R"("unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
      R"("fuse_unk":false,"byte_fallback":false,"vocab":{}{}}},"merges":[]}}}})",
      added.dump(), PreTokenizerJson().dump(), vocab_text, fillers);
}

std::string TokenizerConfigJson(const ModelConfig& config) {
  const Json json = {{"add_bos_token", false},
                     {"add_eos_token", false},
                     {"bos_token", kLeading[0]},
                     {"eos_token", kLeading[1]},
                     {"pad_token", kLeading[2]},
                     {"unk_token", nullptr},
                     {"clean_up_tokenization_spaces", false},
                     {"model_max_length", config.max_position_embeddings},
                     {"tokenizer_class", "PreTrainedTokenizerFast"},
                     {"legacy", true}};
  return json.dump(1) + "\n";
}

std::string GenerationConfigJson(const ModelConfig& config) {
  const Json json = {{"_from_model_config", true},
                     {"bos_token_id", config.bos_token},
                     {"eos_token_id", config.eos_token},
                     {"pad_token_id", config.pad_token},
                     {"do_sample", true},
                     {"temperature", 1.0},
                     {"top_p", 0.95}};
  return json.dump(1) + "\n";
}

}  // namespace deepinfer
