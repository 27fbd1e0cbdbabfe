#include "tokenizer/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>

#include "tokenizer/chat_template.h"
#include "tokenizer/python_json.h"

namespace deepinfer {
namespace {

using namespace chat_template;  // NOLINT: a page of constants

constexpr std::array kControlTokens = {kBos, kEos, kThinkBegin, kThinkEnd, kDsml};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Completion> Parse(ThinkingMode mode) {
    Completion result;
    if (mode == ThinkingMode::kThinking) {
      std::string_view stop;
      result.reasoning_content = ReadUntil({kThinkEnd, kCallsStop}, stop);
      if (stop != kThinkEnd) return Unexpected(std::string(kThinkEnd) + " before any call");
      RETURN_IF_ERROR(Skip(kThinkEnd));
    }
    std::string_view stop;
    result.content = ReadUntil({kEos, kCallsStop}, stop);
    if (stop.empty()) return Unexpected(kEos);
    for (const std::string_view token : kControlTokens) {
      if (result.content.find(token) != std::string::npos ||
          result.reasoning_content.find(token) != std::string::npos) {
        return InvalidArgument(
            fmt::format("found '{}' in the text, expected no control token", token));
      }
    }
    if (stop == kCallsStop) RETURN_IF_ERROR(ReadCalls(result.tool_calls));
    RETURN_IF_ERROR(Skip(kEos));
    if (at_ != text_.size()) return Unexpected("the end of the text");
    return result;
  }

 private:
  // Reads up to the first of several strings, or to the end with an empty `stop`.
  std::string ReadUntil(std::initializer_list<std::string_view> stops, std::string_view& stop) {
    size_t end = text_.size();
    stop = {};
    for (const std::string_view candidate : stops) {
      const size_t found = text_.find(candidate, at_);
      if (found < end) {
        end = found;
        stop = candidate;
      }
    }
    const size_t begin = at_;
    at_ = end;
    return std::string(text_.substr(begin, end - begin));
  }

  bool TrySkip(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  Status Skip(std::string_view expected) {
    return TrySkip(expected) ? Status::Ok() : Unexpected(expected);
  }

  Status Unexpected(std::string_view expected) const {
    constexpr size_t kMaxShown = 40;
    size_t size = std::min(text_.size() - at_, kMaxShown);
    while (at_ + size < text_.size() && size > 0 &&
           (static_cast<uint8_t>(text_[at_ + size]) & 0xC0) == 0x80) {
      --size;
    }
    return InvalidArgument(fmt::format(
        "byte offset {}: found {}, expected {}", at_,
        at_ == text_.size() ? "the end of the text" : PythonDump(text_.substr(at_, size)),
        PythonDump(expected)));
  }

  Status ReadCalls(std::vector<ToolCall>& calls) {
    RETURN_IF_ERROR(Skip(kCallsBegin));
    while (!TrySkip(kCallsEnd)) {
      RETURN_IF_ERROR(Skip(kInvokeBegin));
      ToolCall call;
      std::string_view stop;
      call.name = ReadUntil({"\">\n"}, stop);
      RETURN_IF_ERROR(Skip("\">\n"));
      // The template writes an empty line in a call without parameters, and the published parser
      // lets it pass.
      TrySkip("\n");
      RETURN_IF_ERROR(ReadArguments(call.arguments));
      calls.push_back(std::move(call));
    }
    return Status::Ok();
  }

  // Parameters up to the end of the call, as the text of a JSON object.
  Status ReadArguments(std::string& arguments) {
    std::set<std::string> names;
    arguments.assign(1, '{');
    while (!TrySkip(kInvokeEnd)) {
      RETURN_IF_ERROR(Skip(kParameterBegin));
      std::string_view kind;
      const size_t name_at = at_;
      const std::string name = ReadUntil({kStringParameter, kJsonParameter}, kind);
      if (kind.empty()) return Unexpected(kStringParameter);
      at_ += kind.size();
      std::string_view stop;
      const std::string value = ReadUntil({kParameterEnd}, stop);
      RETURN_IF_ERROR(Skip(kParameterEnd));
      RETURN_IF_ERROR(Skip("\n"));
      if (!names.insert(name).second) {
        return InvalidArgument(fmt::format(
            "byte offset {}: found parameter '{}' again, expected it once", name_at, name));
      }
      if (names.size() > 1) arguments += ", ";
      arguments += PythonDump(name) + ": " + (kind == kStringParameter ? PythonDump(value) : value);
    }
    arguments += "}";
    return Skip("\n");
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<Completion> ParseCompletion(std::string_view text, ThinkingMode mode) {
  return Parser(text).Parse(mode);
}

}  // namespace deepinfer
