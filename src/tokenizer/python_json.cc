#include "tokenizer/python_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

namespace deepinfer {
namespace {

// The destructor and the printer recurse.
constexpr size_t kMaxDepth = 512;

// Keeps the place of the first and the value of the last of equal keys.
void DropRepeatedKeys(std::vector<JsonMember>& members) {
  std::unordered_map<std::string_view, size_t> last;
  for (size_t i = 0; i < members.size(); ++i) last[members[i].key] = i;
  if (last.size() == members.size()) return;
  std::vector<JsonMember> kept;
  for (auto& [key, value] : members) {
    const auto found = last.find(key);
    if (found == last.end()) continue;
    kept.push_back({key, std::move(members[found->second].value)});
    last.erase(found);
  }
  members = std::move(kept);
}

JsonValue Number(std::string text) {
  return {.kind = JsonValue::Kind::kNumber, .text = std::move(text)};
}

// Builds a JsonValue from the events of nlohmann's parser.
class Builder : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  bool null() override { return Add({}); }
  bool boolean(bool value) override {
    return Add({.kind = JsonValue::Kind::kBool, .boolean = value});
  }
  bool number_integer(number_integer_t value) override {
    return Add(Number(fmt::to_string(value)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(Number(fmt::to_string(value)));
  }
  bool number_float(number_float_t value, const string_t& spelling) override {
    // Integers beyond 64 bits arrive here too.
    const bool integer = spelling.find_first_of(".eE") == string_t::npos;
    return Add(Number(integer ? spelling : PythonFloat(value)));
  }
  bool string(string_t& value) override {
    return Add({.kind = JsonValue::Kind::kString, .text = std::move(value)});
  }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& value) override {
    keys_.push_back(std::move(value));
    return true;
  }
  bool start_object(size_t) override { return Open(JsonValue::Kind::kObject); }
  bool start_array(size_t) override { return Open(JsonValue::Kind::kList); }
  bool end_object() override {
    DropRepeatedKeys(open_.back().members);
    return Close();
  }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    // The parser counts bytes from 1 and reports the last one it read.
    error_ = fmt::format("found '{}' before byte offset {}, expected JSON", token, position);
    return false;
  }

  JsonValue& root() { return root_; }
  const std::string& error() const { return error_; }

 private:
  bool Open(JsonValue::Kind kind) {
    if (open_.size() == kMaxDepth) {
      error_ = fmt::format("found nesting deeper than {}, expected at most that", kMaxDepth);
      return false;
    }
    open_.push_back({.kind = kind});
    return true;
  }

  bool Close() {
    JsonValue value = std::move(open_.back());
    open_.pop_back();
    return Add(std::move(value));
  }

  bool Add(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().IsList()) {
      open_.back().items.push_back(std::move(value));
    } else {
      open_.back().members.push_back({std::move(keys_.back()), std::move(value)});
      keys_.pop_back();
    }
    return true;
  }

  std::vector<JsonValue> open_;    // objects and lists whose end has not come yet, outermost first
  std::vector<std::string> keys_;  // of the member that each open object waits for
  JsonValue root_;
  std::string error_;
};

void AppendString(std::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<uint8_t>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<uint8_t>(c));
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
}

void AppendValue(const JsonValue& value, std::string& out) {
  std::string_view separator;
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      out += "null";
      break;
    case JsonValue::Kind::kBool:
      out += value.boolean ? "true" : "false";
      break;
    case JsonValue::Kind::kNumber:
      out += value.text;
      break;
    case JsonValue::Kind::kString:
      AppendString(value.text, out);
      break;
    case JsonValue::Kind::kList:
      out.push_back('[');
      for (const JsonValue& item : value.items) {
        out += std::exchange(separator, ", ");
        AppendValue(item, out);
      }
      out.push_back(']');
      break;
    case JsonValue::Kind::kObject:
      out.push_back('{');
      for (const auto& [key, member] : value.members) {
        out += std::exchange(separator, ", ");
        AppendString(key, out);
        out += ": ";
        AppendValue(member, out);
      }
      out.push_back('}');
      break;
  }
}

// The first characters of a string, for a message.
std::string Shortened(std::string_view text) {
  constexpr size_t kMaxShown = 40;
  if (text.size() <= kMaxShown) return std::string(text);
  size_t end = kMaxShown;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return value.kind == Kind::kNull ? nullptr : &value;
  }
  return nullptr;
}

Result<JsonValue> ParseJson(std::string_view text) {
  Builder builder;
  if (!nlohmann::ordered_json::sax_parse(text.begin(), text.end(), &builder)) {
    return InvalidArgument(builder.error());
  }
  return std::move(builder.root());
}

std::string PythonDump(const JsonValue& value) {
  std::string out;
  AppendValue(value, out);
  return out;
}

std::string PythonDump(std::string_view text) {
  std::string out;
  AppendString(text, out);
  return out;
}

// The shortest digits that read back as the same double; positional for exponents -4 to 15, as
// float.__repr__ has it.
std::string PythonFloat(double value) {
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::scientific);
  std::string_view spelled(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const std::string sign = spelled.front() == '-' ? "-" : "";
  spelled.remove_prefix(sign.size());
  const size_t e = spelled.find('e');
  int exponent = 0;
  const size_t digits_of_exponent = e + (spelled[e + 1] == '+' ? 2 : 1);
  std::from_chars(spelled.data() + digits_of_exponent, spelled.data() + spelled.size(), exponent);
  std::string digits(spelled.substr(0, e));
  if (digits.size() > 1) digits.erase(1, 1);  // the point
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}{}{}{}e{}{:02}", sign, digits[0], digits.size() > 1 ? "." : "",
                       digits.substr(1), exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) {
    return fmt::format("{}0.{}{}", sign, std::string(static_cast<size_t>(-exponent - 1), '0'),
                       digits);
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) digits.append(whole - digits.size() + 1, '0');
  return fmt::format("{}{}.{}", sign, digits.substr(0, whole), digits.substr(whole));
}

std::string DescribeJson(const JsonValue* value) {
  if (value == nullptr) return "nothing";
  switch (value->kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return value->boolean ? "true" : "false";
    case JsonValue::Kind::kNumber:
      return "the number " + Shortened(value->text);
    case JsonValue::Kind::kString:
      return "the string '" + Shortened(value->text) + "'";
    case JsonValue::Kind::kList:
      return fmt::format("a list of {}", value->items.size());
    case JsonValue::Kind::kObject:
      return "an object";
  }
  return "nothing";
}

}  // namespace deepinfer
