#include "tokenizer/tokenizer_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tokenizer/byte_level.h"
#include "tokenizer/utf8.h"

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

// Ids beyond this are a damaged file, not a vocabulary.
constexpr uint64_t kMaxVocab = uint64_t{1} << 24;

// Spelling -> id.  Keys are views into the parsed document.
using SpellingMap = std::unordered_map<std::string_view, int32_t>;

Status Bad(std::string_view what, std::string_view found, std::string_view expected) {
  return CorruptData(fmt::format("{}: found {}, expected {}", what, found, expected));
}

Result<std::string_view> Text(dom::element parent, const char* key, std::string_view where) {
  std::string_view text;
  if (parent[key].get(text) != simdjson::SUCCESS)
    return Bad(where, fmt::format("no '{}'", key), "a string");
  return text;
}

// True unless the key is absent, null or false.
bool IsSet(dom::element parent, const char* key) {
  dom::element element;
  if (parent[key].get(element) != simdjson::SUCCESS || element.is_null()) return false;
  bool value = true;
  return element.get(value) != simdjson::SUCCESS || value;
}

Status CheckModelOptions(dom::element model) {
  ASSIGN_OR_RETURN(const std::string_view type, Text(model, "type", "model"));
  if (type != "BPE")
    return Unsupported(fmt::format("model.type: found '{}', expected 'BPE'", type));
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                          "fuse_unk", "byte_fallback", "ignore_merges"}) {
    if (IsSet(model, key)) {
      return Unsupported(fmt::format("model.{}: found a value, expected none", key));
    }
  }
  return Status::Ok();
}

Status CheckNormalizer(dom::element root) {
  dom::element normalizer;
  if (root["normalizer"].get(normalizer) != simdjson::SUCCESS || normalizer.is_null()) {
    return Status::Ok();
  }
  dom::array parts;
  if (normalizer["normalizers"].get(parts) == simdjson::SUCCESS && parts.size() == 0) {
    return Status::Ok();
  }
  return Unsupported("normalizer: found one, expected none");
}

// The regular expressions of Split stages; the last stage must be a plain ByteLevel.
Result<std::vector<std::string>> ReadPatterns(dom::element root) {
  dom::array stages;
  if (root["pre_tokenizer"]["pretokenizers"].get(stages) != simdjson::SUCCESS) {
    return Unsupported("pre_tokenizer: found no Sequence, expected Split stages and a ByteLevel");
  }
  std::vector<std::string> patterns;
  bool byte_level = false;
  for (const dom::element stage : stages) {
    ASSIGN_OR_RETURN(const std::string_view type, Text(stage, "type", "pre_tokenizer"));
    if (byte_level)
      return Unsupported("pre_tokenizer: found a stage after ByteLevel, expected none");
    if (type == "ByteLevel") {
      byte_level = true;
      if (IsSet(stage, "add_prefix_space") || IsSet(stage, "use_regex")) {
        return Unsupported("pre_tokenizer: ByteLevel: expected add_prefix_space and use_regex off");
      }
      continue;
    }
    if (type != "Split") {
      return Unsupported(
          fmt::format("pre_tokenizer: found stage '{}', expected Split or ByteLevel", type));
    }
    ASSIGN_OR_RETURN(const std::string_view behavior,
                     Text(stage, "behavior", "pre_tokenizer.Split"));
    if (behavior != "Isolated" || IsSet(stage, "invert")) {
      return Unsupported(fmt::format(
          "pre_tokenizer: Split: found behavior '{}', expected 'Isolated', not inverted",
          behavior));
    }
    std::string_view regex;
    if (stage["pattern"]["Regex"].get(regex) != simdjson::SUCCESS) {
      return Unsupported("pre_tokenizer: Split: found no pattern.Regex, expected one");
    }
    patterns.emplace_back(regex);
  }
  if (!byte_level) return Unsupported("pre_tokenizer: found no ByteLevel, expected one at the end");
  return patterns;
}

Status CheckId(std::string_view where, dom::element element, uint64_t& id) {
  if (element.get(id) == simdjson::SUCCESS && id < kMaxVocab) return Status::Ok();
  return Bad(where, "an id that is no small integer", fmt::format("0 to {}", kMaxVocab - 1));
}

TokenizerFile::Token& TokenAt(std::vector<TokenizerFile::Token>& tokens, uint64_t id) {
  if (id >= tokens.size()) tokens.resize(id + 1);
  return tokens[id];
}

Result<SpellingMap> ReadVocab(dom::element model, std::vector<TokenizerFile::Token>& tokens) {
  dom::object vocab;
  if (model["vocab"].get(vocab) != simdjson::SUCCESS) return Bad("model.vocab", "no object", "one");
  SpellingMap ids;
  ids.reserve(vocab.size() * 2);
  for (const auto& [spelling, element] : vocab) {
    uint64_t id = 0;
    RETURN_IF_ERROR(CheckId(fmt::format("model.vocab '{}'", spelling), element, id));
    TokenizerFile::Token& token = TokenAt(tokens, id);
    if (!token.spelling.empty() || !ids.emplace(spelling, static_cast<int32_t>(id)).second) {
      return Bad("model.vocab", fmt::format("id {} or token '{}' twice", id, spelling),
                 "each once");
    }
    token.spelling = spelling;
    // A control token may stand in the vocabulary too, spelled verbatim.
    token.bytes = BytesOfSpelling(spelling).value_or(std::string(spelling));
  }
  return ids;
}

Status ReadAddedTokens(dom::element root, TokenizerFile& file) {
  dom::array added;
  if (root["added_tokens"].get(added) != simdjson::SUCCESS) return Status::Ok();
  for (const dom::element element : added) {
    ASSIGN_OR_RETURN(const std::string_view content, Text(element, "content", "added_tokens"));
    const std::string where = fmt::format("added_tokens '{}'", content);
    uint64_t id = 0;
    dom::element id_element;
    if (element["id"].get(id_element) != simdjson::SUCCESS) return Bad(where, "no id", "one");
    RETURN_IF_ERROR(CheckId(where, id_element, id));
    for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) {
      if (IsSet(element, key))
        return Unsupported(fmt::format("{}: found {} set, expected it off", where, key));
    }
    TokenizerFile::Token& token = TokenAt(file.tokens, id);
    if (token.added || content.empty()) return Bad(where, "an id twice or no content", "each once");
    token.added = true;
    token.bytes = content;
    file.added.Insert(content, static_cast<int32_t>(id));
  }
  return Status::Ok();
}

// "left right", or ["left", "right"].
Result<std::pair<std::string_view, std::string_view>> MergePair(dom::element element) {
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) {
    const size_t space = text.find(' ');
    if (space != std::string_view::npos)
      return std::pair(text.substr(0, space), text.substr(space + 1));
  }
  std::string_view left;
  std::string_view right;
  if (element.at(0).get(left) == simdjson::SUCCESS &&
      element.at(1).get(right) == simdjson::SUCCESS) {
    return std::pair(left, right);
  }
  return Bad("model.merges", "an entry that is no pair", "'left right'");
}

Status ReadMerges(dom::element model, const SpellingMap& ids, TokenizerFile& file) {
  dom::array merges;
  if (model["merges"].get(merges) != simdjson::SUCCESS)
    return Bad("model.merges", "no array", "one");
  file.merges = MergeTable(merges.size());
  std::string joined;
  int32_t rank = 0;
  for (const dom::element element : merges) {
    ASSIGN_OR_RETURN(const auto pair, MergePair(element));
    joined.assign(pair.first);
    joined.append(pair.second);
    const auto left = ids.find(pair.first);
    const auto right = ids.find(pair.second);
    const auto merged = ids.find(joined);
    if (left == ids.end() || right == ids.end() || merged == ids.end()) {
      return Bad("model.merges", fmt::format("'{} {}'", pair.first, pair.second),
                 "parts and result in the vocabulary");
    }
    file.merges.Insert(left->second, right->second, {.rank = rank++, .id = merged->second});
  }
  return Status::Ok();
}

Status FindByteIds(const SpellingMap& ids, std::array<int32_t, 256>& byte_ids) {
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto id = ids.find(ByteSpellings()[byte]);
    if (id == ids.end())
      return Bad("model.vocab", fmt::format("no token for byte {}", byte), "one");
    byte_ids[byte] = id->second;
  }
  return Status::Ok();
}

}  // namespace

Result<TokenizerFile> ParseTokenizerFile(std::string_view json) {
  dom::parser parser;
  dom::element root;
  const simdjson::padded_string padded(json);
  if (const auto error = parser.parse(padded).get(root); error != simdjson::SUCCESS) {
    return CorruptData(fmt::format("not JSON: {}", simdjson::error_message(error)));
  }
  dom::element model;
  if (root["model"].get(model) != simdjson::SUCCESS) {
    return Bad("tokenizer", "no 'model'", "a tokenizer.json");
  }
  RETURN_IF_ERROR(CheckModelOptions(model));
  RETURN_IF_ERROR(CheckNormalizer(root));
  ASSIGN_OR_RETURN(const std::vector<std::string> patterns, ReadPatterns(root));
  ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::Compile(patterns));
  TokenizerFile file{.tokens = {},
                     .byte_ids = {},
                     .merges = MergeTable(0),
                     .added = {},
                     .pre_tokenizer = std::move(pre_tokenizer)};
  ASSIGN_OR_RETURN(const SpellingMap ids, ReadVocab(model, file.tokens));
  RETURN_IF_ERROR(FindByteIds(ids, file.byte_ids));
  RETURN_IF_ERROR(ReadMerges(model, ids, file));
  RETURN_IF_ERROR(ReadAddedTokens(root, file));
  return file;
}

}  // namespace deepinfer
