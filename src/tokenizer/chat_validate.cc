#include "tokenizer/chat_validate.h"

#include <fmt/format.h>

#include <string>

#include "tokenizer/chat_template.h"

namespace deepinfer {
namespace {

// The image token in a text would be expanded to positions of an image that does not exist.
Status CheckText(std::string_view text, std::string_view path) {
  const size_t at = text.find(chat_template::kImage);
  if (at == std::string_view::npos) return Status::Ok();
  return InvalidArgument(
      fmt::format("{}: found '{}' at byte offset {}, expected an image block "
                  "or text without it",
                  path, chat_template::kImage, at));
}

Status CheckBlocks(const std::vector<ContentBlock>& blocks, Role role, const std::string& path) {
  const bool text_only = role != Role::kUser && role != Role::kTool;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const ContentBlock& block = blocks[i];
    const std::string block_path = blocks.size() == 1 ? path : fmt::format("{}[{}]", path, i);
    if (text_only && block.kind != ContentBlock::Kind::kText) {
      return InvalidArgument(
          fmt::format("{}: found a block other than text on a {} message, "
                      "expected text",
                      block_path, RoleName(role)));
    }
    RETURN_IF_ERROR(CheckText(block.text, block_path));
    RETURN_IF_ERROR(CheckBlocks(block.blocks, Role::kTool, block_path + ".content"));
  }
  return Status::Ok();
}

Status CheckAllowed(bool present, bool allowed, Role role, std::string_view path,
                    std::string_view expected) {
  if (!present || allowed) return Status::Ok();
  return InvalidArgument(fmt::format("{}: found one on a {} message, expected it on {} only", path,
                                     RoleName(role), expected));
}

Status CheckFields(const Message& message, const std::string& path) {
  const Role role = message.role;
  const bool system = role == Role::kSystem;
  const bool assistant = role == Role::kAssistant;
  RETURN_IF_ERROR(
      CheckAllowed(!message.tools.empty(), system, role, path + ".tools", "system messages"));
  RETURN_IF_ERROR(CheckAllowed(!message.response_format.empty(), system, role,
                               path + ".response_format", "system messages"));
  RETURN_IF_ERROR(CheckAllowed(message.task.has_value(), system || role == Role::kUser, role,
                               path + ".task", "user and system messages"));
  RETURN_IF_ERROR(CheckAllowed(!message.tool_calls.empty(), assistant, role, path + ".tool_calls",
                               "assistant messages"));
  RETURN_IF_ERROR(CheckAllowed(!message.reasoning_content.empty(), assistant, role,
                               path + ".reasoning_content", "assistant messages"));
  return CheckAllowed(message.open_ended, assistant, role, path + ".wo_eos", "assistant messages");
}

Status CheckTexts(const Message& message, const std::string& path) {
  RETURN_IF_ERROR(CheckText(message.reasoning_content, path + ".reasoning_content"));
  RETURN_IF_ERROR(CheckText(message.response_format, path + ".response_format"));
  for (size_t i = 0; i < message.tools.size(); ++i) {
    RETURN_IF_ERROR(CheckText(message.tools[i], fmt::format("{}.tools[{}]", path, i)));
  }
  for (size_t i = 0; i < message.tool_calls.size(); ++i) {
    const std::string call_path = fmt::format("{}.tool_calls[{}]", path, i);
    RETURN_IF_ERROR(CheckText(message.tool_calls[i].name, call_path + ".function.name"));
    RETURN_IF_ERROR(CheckText(message.tool_calls[i].arguments, call_path + ".function.arguments"));
  }
  return CheckBlocks(message.content, message.role, path + ".content");
}

}  // namespace

Status ValidateChat(std::span<const Message> messages, const ChatOptions& options) {
  if (messages.empty()) return InvalidArgument("messages: found none, expected at least one");
  if (options.reasoning_effort < 1 || options.reasoning_effort > 100) {
    return InvalidArgument(
        fmt::format("reasoning_effort: found {}, expected 1 to 100", options.reasoning_effort));
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    RETURN_IF_ERROR(CheckFields(messages[i], path));
    RETURN_IF_ERROR(CheckTexts(messages[i], path));
  }
  return Status::Ok();
}

}  // namespace deepinfer
