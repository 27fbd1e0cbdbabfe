#include "tokenizer/tokenizer_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <string>
#include <utility>
#include <vector>

#include "tokenizer/byte_alphabet.h"

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

// JSON of a value for a message, cut to a readable length.
std::string Describe(dom::element element) {
  constexpr size_t kMaxShown = 60;
  std::string text = simdjson::minify(element);
  if (text.size() > kMaxShown) {
    size_t end = kMaxShown;
    while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
    text += "...";
  }
  return text;
}

// The member, or nothing when it is missing or null.
std::optional<dom::element> Member(dom::object object, std::string_view key) {
  dom::element element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS || element.is_null()) {
    return std::nullopt;
  }
  return element;
}

Status Unexpected(std::string_view path, std::optional<dom::element> found,
                  std::string_view expected) {
  return Unsupported(fmt::format("{}: found {}, expected {}", path,
                                 found ? Describe(*found) : "nothing", expected));
}

template <typename T>
Result<T> Required(dom::object object, std::string_view key, std::string_view path,
                   std::string_view expected) {
  const std::optional<dom::element> member = Member(object, key);
  T value;
  if (!member || member->get(value) != simdjson::SUCCESS) {
    return CorruptData(fmt::format("{}.{}: found {}, expected {}", path, key,
                                   member ? Describe(*member) : "nothing", expected));
  }
  return value;
}

// A flag that is false when missing.
Result<bool> Flag(dom::object object, std::string_view key, std::string_view path) {
  const std::optional<dom::element> member = Member(object, key);
  bool value = false;
  if (member && member->get(value) != simdjson::SUCCESS) {
    return Unexpected(fmt::format("{}.{}", path, key), member, "true or false");
  }
  return value;
}

Status RequireFalse(dom::object object, std::string_view key, std::string_view path) {
  ASSIGN_OR_RETURN(const bool value, Flag(object, key, path));
  if (!value) return Status::Ok();
  return Unsupported(fmt::format("{}.{}: found true, expected false", path, key));
}

// Missing, null, or a value that changes nothing: an empty string or zero.
Status RequireUnset(dom::object object, std::string_view key, std::string_view path) {
  const std::optional<dom::element> member = Member(object, key);
  if (!member) return Status::Ok();
  std::string_view text;
  if (member->get(text) == simdjson::SUCCESS && text.empty()) return Status::Ok();
  double number = 0;
  if (member->get(number) == simdjson::SUCCESS && number == 0) return Status::Ok();
  return Unexpected(fmt::format("{}.{}", path, key), member, "null");
}

std::string_view TypeOf(dom::object object) {
  std::string_view type;
  if (object.at_key("type").get(type) != simdjson::SUCCESS) return "";
  return type;
}

// null or an empty Sequence.
Status CheckNormalizer(dom::object root) {
  const std::optional<dom::element> member = Member(root, "normalizer");
  if (!member) return Status::Ok();
  dom::object normalizer;
  dom::array steps;
  const bool empty_sequence =
      member->get(normalizer) == simdjson::SUCCESS && TypeOf(normalizer) == "Sequence" &&
      normalizer.at_key("normalizers").get(steps) == simdjson::SUCCESS && steps.size() == 0;
  if (empty_sequence) return Status::Ok();
  return Unexpected("normalizer", member, "null or an empty Sequence");
}

Status CheckType(dom::object root, std::string_view key, bool may_be_missing) {
  const std::optional<dom::element> member = Member(root, key);
  if (!member && may_be_missing) return Status::Ok();
  dom::object object;
  if (member && member->get(object) == simdjson::SUCCESS && TypeOf(object) == "ByteLevel") {
    return Status::Ok();
  }
  return Unexpected(key, member, may_be_missing ? "null or type ByteLevel" : "type ByteLevel");
}

Result<std::string> ParseSplit(dom::object split, const std::string& path) {
  ASSIGN_OR_RETURN(const dom::object pattern,
                   Required<dom::object>(split, "pattern", path, "{\"Regex\": ...}"));
  ASSIGN_OR_RETURN(
      const std::string_view regex,
      Required<std::string_view>(pattern, "Regex", path + ".pattern", "a regular expression"));
  ASSIGN_OR_RETURN(const std::string_view behavior,
                   Required<std::string_view>(split, "behavior", path, "\"Isolated\""));
  if (behavior != "Isolated") {
    return Unsupported(fmt::format("{}.behavior: found '{}', expected 'Isolated'", path, behavior));
  }
  RETURN_IF_ERROR(RequireFalse(split, "invert", path));
  return std::string(regex);
}

Status CheckByteLevel(dom::object step, const std::string& path) {
  RETURN_IF_ERROR(RequireFalse(step, "add_prefix_space", path));
  // The library's default for a missing key is true.
  ASSIGN_OR_RETURN(const bool use_regex,
                   Required<bool>(step, "use_regex", path, "false (the splits come before it)"));
  if (use_regex) return Unsupported(path + ".use_regex: found true, expected false");
  return Status::Ok();
}

// A Sequence of Splits that ends with ByteLevel.
Result<PreTokenizer> ParsePreTokenizer(dom::object root) {
  constexpr std::string_view kExpected = "a Sequence of Splits that ends with ByteLevel";
  const std::optional<dom::element> member = Member(root, "pre_tokenizer");
  dom::object sequence;
  dom::array steps;
  if (!member || member->get(sequence) != simdjson::SUCCESS || TypeOf(sequence) != "Sequence" ||
      sequence.at_key("pretokenizers").get(steps) != simdjson::SUCCESS || steps.size() == 0) {
    return Unexpected("pre_tokenizer", member, kExpected);
  }
  std::vector<std::string> patterns;
  size_t index = 0;
  for (const dom::element element : steps) {
    const std::string path = fmt::format("pre_tokenizer.pretokenizers[{}]", index);
    const bool last = ++index == steps.size();
    dom::object step;
    if (element.get(step) != simdjson::SUCCESS) return Unexpected(path, element, kExpected);
    if (TypeOf(step) != (last ? "ByteLevel" : "Split")) return Unexpected(path, element, kExpected);
    if (last) {
      RETURN_IF_ERROR(CheckByteLevel(step, path));
    } else {
      ASSIGN_OR_RETURN(std::string pattern, ParseSplit(step, path));
      patterns.push_back(std::move(pattern));
    }
  }
  Result<PreTokenizer> splitter = PreTokenizer::Create(patterns);
  if (!splitter.ok()) return std::move(splitter).status().WithContext("pre_tokenizer");
  return splitter;
}

Status ReadVocab(dom::object model, std::vector<Vocabulary::Entry>& entries) {
  ASSIGN_OR_RETURN(const dom::object vocab,
                   Required<dom::object>(model, "vocab", "model", "an object of token ids"));
  entries.reserve(vocab.size());
  for (const dom::key_value_pair pair : vocab) {
    int64_t id = 0;
    if (pair.value.get(id) != simdjson::SUCCESS) {
      return CorruptData(fmt::format("model.vocab['{}']: found {}, expected an integer id",
                                     pair.key, Describe(pair.value)));
    }
    entries.push_back({.spelling = pair.key, .id = id});
  }
  return Status::Ok();
}

Status ReadAddedTokens(dom::object root, std::vector<Vocabulary::Entry>& entries) {
  ASSIGN_OR_RETURN(const dom::array added,
                   Required<dom::array>(root, "added_tokens", "tokenizer.json", "a list"));
  size_t index = 0;
  for (const dom::element element : added) {
    const std::string path = fmt::format("added_tokens[{}]", index++);
    dom::object token;
    if (element.get(token) != simdjson::SUCCESS) return Unexpected(path, element, "an object");
    ASSIGN_OR_RETURN(const int64_t id, Required<int64_t>(token, "id", path, "an integer id"));
    ASSIGN_OR_RETURN(const std::string_view content,
                     Required<std::string_view>(token, "content", path, "a string"));
    if (content.empty()) return CorruptData(path + ".content: found '', expected some text");
    // `special` and `normalized` change nothing: every added token is matched, and there is no
    // normalizer.
    for (const std::string_view flag : {"single_word", "lstrip", "rstrip"}) {
      RETURN_IF_ERROR(RequireFalse(token, flag, path));
    }
    entries.push_back({.spelling = content, .id = id, .added = true});
  }
  return Status::Ok();
}

// Two spellings, written as "left right" or ["left", "right"].
bool SplitMerge(dom::element element, std::pair<std::string_view, std::string_view>& sides) {
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      return false;
    }
    sides = {text.substr(0, space), text.substr(space + 1)};
    return true;
  }
  dom::array array;
  return element.get(array) == simdjson::SUCCESS && array.size() == 2 &&
         array.at(0).get(sides.first) == simdjson::SUCCESS &&
         array.at(1).get(sides.second) == simdjson::SUCCESS;
}

Status ReadMerges(dom::object model, const Vocabulary& vocabulary, BpeMerger& merger) {
  BpeMerger::ByteTokens byte_tokens;
  for (size_t byte = 0; byte < byte_tokens.size(); ++byte) {
    const std::string spelling = SpellByte(static_cast<uint8_t>(byte));
    const std::optional<int32_t> token = vocabulary.Find(spelling);
    if (!token) {
      return CorruptData(fmt::format(
          "model.vocab: found no token '{}' for byte {}, expected all 256 bytes", spelling, byte));
    }
    byte_tokens[byte] = *token;
  }
  ASSIGN_OR_RETURN(const dom::array merges,
                   Required<dom::array>(model, "merges", "model", "a list of pairs"));
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  for (const dom::element element : merges) {
    if (!SplitMerge(element, pairs.emplace_back())) {
      return CorruptData(fmt::format("model.merges[{}]: found {}, expected a pair of tokens",
                                     pairs.size() - 1, Describe(element)));
    }
  }
  merger = BpeMerger(byte_tokens, pairs.size());
  std::string joined;
  for (size_t i = 0; i < pairs.size(); ++i) {
    joined.assign(pairs[i].first).append(pairs[i].second);
    const std::optional<int32_t> left = vocabulary.Find(pairs[i].first);
    const std::optional<int32_t> right = vocabulary.Find(pairs[i].second);
    const std::optional<int32_t> merged = vocabulary.Find(joined);
    if (!left || !right || !merged) {
      return CorruptData(fmt::format(
          "model.merges[{}]: found '{}' and '{}', expected both and '{}' in the vocabulary", i,
          pairs[i].first, pairs[i].second, joined));
    }
    merger.Add(*left, *right, *merged);
  }
  return Status::Ok();
}

Status CheckModel(dom::object model) {
  if (TypeOf(model) != "BPE") {
    return Unsupported(fmt::format("model.type: found '{}', expected 'BPE'", TypeOf(model)));
  }
  RETURN_IF_ERROR(RequireFalse(model, "byte_fallback", "model"));
  for (const std::string_view key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    RETURN_IF_ERROR(RequireUnset(model, key, "model"));
  }
  return Status::Ok();
}

}  // namespace

Result<TokenizerParts> ParseTokenizerJson(std::string_view json) {
  const simdjson::padded_string padded(json);
  dom::parser parser;
  dom::element document;
  const simdjson::error_code error = parser.parse(padded).get(document);
  dom::object root;
  if (error != simdjson::SUCCESS || document.get(root) != simdjson::SUCCESS) {
    return CorruptData(fmt::format(
        "found {}, expected a JSON object",
        error != simdjson::SUCCESS ? simdjson::error_message(error) : "another JSON value"));
  }
  ASSIGN_OR_RETURN(const dom::object model,
                   Required<dom::object>(root, "model", "tokenizer.json", "an object"));
  RETURN_IF_ERROR(CheckModel(model));
  RETURN_IF_ERROR(CheckNormalizer(root));
  RETURN_IF_ERROR(CheckType(root, "post_processor", /*may_be_missing=*/true));
  RETURN_IF_ERROR(CheckType(root, "decoder", /*may_be_missing=*/false));

  TokenizerParts parts;
  ASSIGN_OR_RETURN(parts.whole_words_first, Flag(model, "ignore_merges", "model"));
  ASSIGN_OR_RETURN(parts.pre_tokenizer, ParsePreTokenizer(root));
  std::vector<Vocabulary::Entry> entries;
  RETURN_IF_ERROR(ReadVocab(model, entries));
  const size_t num_plain = entries.size();
  RETURN_IF_ERROR(ReadAddedTokens(root, entries));
  ASSIGN_OR_RETURN(parts.vocabulary, Vocabulary::Build(entries));
  RETURN_IF_ERROR(ReadMerges(model, parts.vocabulary, parts.merger));
  for (size_t i = num_plain; i < entries.size(); ++i) {
    parts.added_tokens.Add(entries[i].spelling, static_cast<int32_t>(entries[i].id));
  }
  return parts;
}

}  // namespace deepinfer
