#include "apps/generate/jsonl_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

// What is there, for a message, cut to a readable length.
std::string Describe(dom::element value) {
  constexpr size_t kMaxShown = 60;
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  std::string text = simdjson::minify(value);
  if (text.size() <= kMaxShown) return text;
  size_t end = kMaxShown;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

Status Unexpected(dom::element value, std::string_view expected) {
  return InvalidArgument(fmt::format("found {}, expected {}", Describe(value), expected));
}

// ---- one reader for each type of field ----

template <typename T>
Status Read(dom::element value, std::optional<T>& out) {
  if constexpr (std::is_same_v<T, double>) {
    double number = 0;
    if (value.get(number) != simdjson::SUCCESS) return Unexpected(value, "a number");
    out = number;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    uint64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS) {
      return Unexpected(value, "an integer from 0 to 18446744073709551615");
    }
    out = number;
  } else {
    int64_t number = 0;
    if (value.get(number) != simdjson::SUCCESS || !std::in_range<T>(number)) {
      return Unexpected(value, "an integer");
    }
    out = static_cast<T>(number);
  }
  return Status::Ok();
}

Status Read(dom::element value, std::optional<std::string>& out) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return Unexpected(value, "a string");
  out = std::string(text);
  return Status::Ok();
}

Status Read(dom::element value, std::optional<bool>& out) {
  bool flag = false;
  if (value.get(flag) != simdjson::SUCCESS) return Unexpected(value, "true or false");
  out = flag;
  return Status::Ok();
}

Status ReadId(dom::element value, std::string& id) {
  int64_t number = 0;
  std::string_view text;
  if (value.get(number) == simdjson::SUCCESS) {
    id = std::to_string(number);
    return Status::Ok();
  }
  if (value.get(text) != simdjson::SUCCESS) {
    return Unexpected(value, "a string or an integer");
  }
  id = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return Status::Ok();
}

// A string, or a list of strings.
Status Read(dom::element value, std::optional<std::vector<std::string>>& out) {
  std::vector<std::string> stops;
  std::string_view text;
  dom::array list;
  if (value.get(text) == simdjson::SUCCESS) {
    stops.emplace_back(text);
  } else if (value.get(list) == simdjson::SUCCESS) {
    for (const dom::element item : list) {
      if (item.get(text) != simdjson::SUCCESS) {
        return Unexpected(item, "a list of strings only");
      }
      stops.emplace_back(text);
    }
  } else {
    return Unexpected(value, "a string or a list of strings");
  }
  out = std::move(stops);
  return Status::Ok();
}

// A name, or a number from 1 to 100.
Status ReadEffort(dom::element value, std::optional<std::string>& out) {
  int64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) {
    out = std::to_string(number);
    return Status::Ok();
  }
  return Read(value, out);
}

// {"token id": bias, ...}
Status Read(dom::element value, std::optional<std::vector<std::pair<int32_t, float>>>& out) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    return Unexpected(value, "an object of token ids and biases");
  }
  std::vector<std::pair<int32_t, float>> biases;
  for (const auto& [key, element] : object) {
    double bias = 0;
    if (element.get(bias) != simdjson::SUCCESS) return Unexpected(element, "a number as bias");
    int32_t token = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size()) {
      return InvalidArgument(fmt::format("found key '{}', expected a token id", key));
    }
    biases.emplace_back(token, static_cast<float>(bias));
  }
  out = std::move(biases);
  return Status::Ok();
}

// The list's text, once it is known to hold messages.
Status ReadMessages(dom::element value, std::optional<std::string>& out) {
  if (!value.is_array()) return Unexpected(value, "a list");
  std::string json(simdjson::minify(value));
  RETURN_IF_ERROR(ParseMessages(json).status());
  out = std::move(json);
  return Status::Ok();
}

// ---- the fields ----

struct Field {
  std::string_view name;
  Status (*read)(dom::element value, JsonlRequest& request);
};

template <auto kMember>
Status ReadOption(dom::element value, JsonlRequest& request) {
  return Read(value, request.options.*kMember);
}

template <auto kMember>
Status ReadSource(dom::element value, JsonlRequest& request) {
  return Read(value, request.source.*kMember);
}

constexpr Field kFields[] = {
    {"id", [](dom::element value, JsonlRequest& request) { return ReadId(value, request.id); }},
    {"prompt", ReadSource<&PromptSource::text>},
    {"messages",
     [](dom::element value, JsonlRequest& request) {
       return ReadMessages(value, request.source.messages);
     }},
    {"effort", [](dom::element value,
                  JsonlRequest& request) { return ReadEffort(value, request.options.effort); }},
    {"system", ReadOption<&RequestOptions::system>},
    {"raw", ReadOption<&RequestOptions::raw>},
    {"thinking", ReadOption<&RequestOptions::thinking>},
    {"max_tokens", ReadOption<&RequestOptions::max_tokens>},
    {"temperature", ReadOption<&RequestOptions::temperature>},
    {"top_p", ReadOption<&RequestOptions::top_p>},
    {"top_k", ReadOption<&RequestOptions::top_k>},
    {"min_p", ReadOption<&RequestOptions::min_p>},
    {"repetition_penalty", ReadOption<&RequestOptions::repetition_penalty>},
    {"presence_penalty", ReadOption<&RequestOptions::presence_penalty>},
    {"frequency_penalty", ReadOption<&RequestOptions::frequency_penalty>},
    {"logit_bias", ReadOption<&RequestOptions::logit_bias>},
    {"seed", ReadOption<&RequestOptions::seed>},
    {"stop", ReadOption<&RequestOptions::stop>},
    {"logprobs", ReadOption<&RequestOptions::logprobs>},
};

Status UnknownField(std::string_view key) {
  std::vector<std::string_view> names;
  for (const Field& field : kFields) names.push_back(field.name);
  return InvalidArgument(
      fmt::format("found unknown field '{}', expected one of {}", key, fmt::join(names, ", ")));
}

Status ReadField(std::string_view key, dom::element value, JsonlRequest& request) {
  for (const Field& field : kFields) {
    if (field.name != key) continue;
    if (value.is_null()) return Status::Ok();
    return field.read(value, request).WithContext(field.name);
  }
  return UnknownField(key);
}

Status ReadFields(dom::object object, JsonlRequest& request) {
  std::set<std::string_view> seen;
  for (const auto& [key, value] : object) {
    if (!seen.insert(key).second) {
      return InvalidArgument(fmt::format("{}: found it twice, expected it once", key));
    }
    RETURN_IF_ERROR(ReadField(key, value, request));
  }
  return Status::Ok();
}

}  // namespace

Status ParseJsonlRequest(std::string_view line, JsonlRequest& request) {
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(line.data(), line.size()).get(root)) {
    return InvalidArgument(fmt::format("found malformed JSON ({}), expected an object",
                                       simdjson::error_message(error)));
  }
  dom::object object;
  if (root.get(object) != simdjson::SUCCESS) return Unexpected(root, "an object");
  // The id first, so that a line with an error elsewhere is still told by name.
  dom::element id;
  if (object.at_key("id").get(id) == simdjson::SUCCESS) (void)ReadId(id, request.id);
  RETURN_IF_ERROR(ReadFields(object, request));
  if (request.source.text.has_value() == request.source.messages.has_value()) {
    return InvalidArgument(request.source.text
                               ? "found prompt and messages, expected one of them"
                               : "found neither prompt nor messages, expected one of them");
  }
  return Status::Ok();
}

}  // namespace deepinfer
