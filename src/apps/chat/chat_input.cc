#include "apps/chat/chat_input.h"

#include <string_view>

namespace deepinfer {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr const char* kGoesOn = "... ";

Result<TypedLine> NextPart(LineReader& reader, std::string_view expected) {
  ASSIGN_OR_RETURN(TypedLine part, reader.Read(kGoesOn));
  if (part.kind != TypedLine::Kind::kEnd || reader.IsTerminal()) return part;
  return InvalidArgument("stdin: found the end inside a message, expected " +
                         std::string(expected));
}

Result<TypedLine> ReadQuoted(LineReader& reader, std::string text) {
  while (!text.ends_with(kQuotes)) {
    ASSIGN_OR_RETURN(const TypedLine part, NextPart(reader, kQuotes));
    if (part.kind != TypedLine::Kind::kLine) return part;
    if (!text.empty()) text += '\n';
    text += part.text;
  }
  text.erase(text.size() - kQuotes.size());
  if (text.ends_with('\n')) text.pop_back();  // the closing quotes stood alone
  return TypedLine{.kind = TypedLine::Kind::kLine, .text = std::move(text)};
}

Result<TypedLine> ReadContinued(LineReader& reader, std::string text) {
  while (text.ends_with('\\')) {
    text.back() = '\n';
    ASSIGN_OR_RETURN(const TypedLine part, NextPart(reader, "another line"));
    if (part.kind != TypedLine::Kind::kLine) return part;
    text += part.text;
  }
  return TypedLine{.kind = TypedLine::Kind::kLine, .text = std::move(text)};
}

}  // namespace

Result<TypedLine> ReadTypedMessage(LineReader& reader, const std::string& prompt,
                                   const std::string& initial) {
  ASSIGN_OR_RETURN(TypedLine first, reader.Read(prompt, initial));
  if (first.kind != TypedLine::Kind::kLine) return first;
  Result<TypedLine> message = first.text.starts_with(kQuotes)
                                  ? ReadQuoted(reader, first.text.substr(kQuotes.size()))
                                  : ReadContinued(reader, std::move(first.text));
  const bool worth = message.ok() && message->kind == TypedLine::Kind::kLine &&
                     message->text.find_first_not_of(" \t\n") != std::string::npos;
  if (worth) reader.Remember(message->text);
  return message;
}

}  // namespace deepinfer
