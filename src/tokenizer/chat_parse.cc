// JSON text to messages.
#include <fmt/format.h>

#include <array>
#include <string>

#include "tokenizer/chat.h"
#include "tokenizer/python_json.h"

namespace deepinfer {
namespace {

constexpr std::array kRoles = {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool,
                               Role::kLatestReminder};
constexpr std::array kTasks = {Task::kAction, Task::kQuery, Task::kAuthority,
                               Task::kDomain, Task::kTitle, Task::kReadUrl};

Status Unexpected(std::string_view path, const JsonValue* found, std::string_view expected) {
  return InvalidArgument(
      fmt::format("{}: found {}, expected {}", path, DescribeJson(found), expected));
}

// A string member; empty when missing.
Result<std::string> OptionalString(const JsonValue& object, std::string_view key,
                                   const std::string& path) {
  const JsonValue* member = object.Find(key);
  if (member == nullptr) return std::string();
  if (!member->IsString()) return Unexpected(fmt::format("{}.{}", path, key), member, "a string");
  return member->text;
}

Result<std::string> RequiredString(const JsonValue& object, std::string_view key,
                                   const std::string& path) {
  if (object.Find(key) == nullptr) {
    return Unexpected(fmt::format("{}.{}", path, key), nullptr, "a string");
  }
  return OptionalString(object, key, path);
}

Result<bool> OptionalBool(const JsonValue& object, std::string_view key, const std::string& path) {
  const JsonValue* member = object.Find(key);
  if (member == nullptr) return false;
  if (member->kind != JsonValue::Kind::kBool) {
    return Unexpected(fmt::format("{}.{}", path, key), member, "true or false");
  }
  return member->boolean;
}

// The list under a key; null when missing.
Result<const std::vector<JsonValue>*> OptionalList(const JsonValue& object, std::string_view key,
                                                   const std::string& path) {
  const JsonValue* member = object.Find(key);
  if (member == nullptr) return static_cast<const std::vector<JsonValue>*>(nullptr);
  if (!member->IsList()) return Unexpected(fmt::format("{}.{}", path, key), member, "a list");
  return &member->items;
}

// {"image_url": {"url": ...}}, {"image_url": ...} or {"url": ...}
std::string UrlOf(const JsonValue& block) {
  const JsonValue* url = block.Find("image_url");
  if (url == nullptr) url = block.Find("url");
  if (url != nullptr && url->IsObject()) url = url->Find("url");
  return url != nullptr && url->IsString() ? url->text : "";
}

Result<std::vector<ContentBlock>> ParseContent(const JsonValue* content, const std::string& path);

Result<ContentBlock> ParseBlock(const JsonValue& value, const std::string& path) {
  if (!value.IsObject()) return Unexpected(path, &value, "an object");
  ASSIGN_OR_RETURN(const std::string type, RequiredString(value, "type", path));
  ContentBlock block;
  if (type == "text") {
    ASSIGN_OR_RETURN(block.text, RequiredString(value, "text", path));
  } else if (type == "image" || type == "image_url") {
    block.kind = ContentBlock::Kind::kImage;
    block.image = {.type = type, .url = UrlOf(value), .json = PythonDump(value)};
  } else if (type == "tool_result") {
    block.kind = ContentBlock::Kind::kToolResult;
    ASSIGN_OR_RETURN(block.tool_call_id, OptionalString(value, "tool_use_id", path));
    if (block.tool_call_id.empty()) {
      ASSIGN_OR_RETURN(block.tool_call_id, OptionalString(value, "tool_call_id", path));
    }
    ASSIGN_OR_RETURN(block.blocks, ParseContent(value.Find("content"), path + ".content"));
  } else {
    block.kind = ContentBlock::Kind::kOther;
    block.text = type;
  }
  return block;
}

// A string, a list of blocks, or nothing.
Result<std::vector<ContentBlock>> ParseContent(const JsonValue* content, const std::string& path) {
  std::vector<ContentBlock> blocks;
  if (content == nullptr || content->IsString()) {
    blocks.push_back({.text = content != nullptr ? content->text : ""});
    return blocks;
  }
  if (!content->IsList()) return Unexpected(path, content, "a string or a list of blocks");
  for (size_t i = 0; i < content->items.size(); ++i) {
    ASSIGN_OR_RETURN(ContentBlock block,
                     ParseBlock(content->items[i], fmt::format("{}[{}]", path, i)));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

Result<ToolCall> ParseToolCall(const JsonValue& value, const std::string& path) {
  if (!value.IsObject()) return Unexpected(path, &value, "an object");
  const JsonValue* function = value.Find("function");
  const std::string function_path = path + ".function";
  if (function == nullptr || !function->IsObject()) {
    return Unexpected(function_path, function, "an object with name and arguments");
  }
  ToolCall call;
  ASSIGN_OR_RETURN(call.id, OptionalString(value, "id", path));
  if (call.id.empty()) {
    ASSIGN_OR_RETURN(call.id, OptionalString(*function, "id", function_path));
  }
  ASSIGN_OR_RETURN(call.name, RequiredString(*function, "name", function_path));
  const JsonValue* arguments = function->Find("arguments");
  if (arguments == nullptr) {
    call.arguments = "{}";
  } else if (arguments->IsString()) {
    call.arguments = arguments->text;
  } else if (arguments->IsObject()) {
    call.arguments = PythonDump(*arguments);
  } else {
    return Unexpected(function_path + ".arguments", arguments, "a JSON text or an object");
  }
  return call;
}

Status ParseTools(const JsonValue& value, const std::string& path, Message& message) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue>* tools, OptionalList(value, "tools", path));
  if (tools == nullptr) return Status::Ok();
  for (size_t i = 0; i < tools->size(); ++i) {
    const JsonValue* function = (*tools)[i].Find("function");
    if (function == nullptr || !function->IsObject()) {
      return Unexpected(fmt::format("{}.tools[{}].function", path, i), function, "an object");
    }
    message.tools.push_back(PythonDump(*function));
  }
  return Status::Ok();
}

Status ParseToolCalls(const JsonValue& value, const std::string& path, Message& message) {
  ASSIGN_OR_RETURN(const std::vector<JsonValue>* calls, OptionalList(value, "tool_calls", path));
  if (calls == nullptr) return Status::Ok();
  for (size_t i = 0; i < calls->size(); ++i) {
    ASSIGN_OR_RETURN(ToolCall call,
                     ParseToolCall((*calls)[i], fmt::format("{}.tool_calls[{}]", path, i)));
    message.tool_calls.push_back(std::move(call));
  }
  return Status::Ok();
}

Status ParseTask(const JsonValue& value, const std::string& path, Message& message) {
  const JsonValue* found = value.Find("task");
  if (found == nullptr) return Status::Ok();
  for (const Task task : kTasks) {
    if (found->IsString() && found->text == TaskName(task)) message.task = task;
  }
  if (message.task) return Status::Ok();
  return Unexpected(path + ".task", found,
                    "one of action, query, authority, domain, title, read_url");
}

Status ParseResponseFormat(const JsonValue& value, const std::string& path, Message& message) {
  const JsonValue* found = value.Find("response_format");
  if (found == nullptr) return Status::Ok();
  if (!found->IsObject()) return Unexpected(path + ".response_format", found, "an object");
  if (!found->members.empty()) message.response_format = PythonDump(*found);
  return Status::Ok();
}

Status ParseRole(const JsonValue& value, const std::string& path, Message& message) {
  const JsonValue* found = value.Find("role");
  for (const Role role : kRoles) {
    if (found != nullptr && found->IsString() && found->text == RoleName(role)) {
      message.role = role;
      return Status::Ok();
    }
  }
  return Unexpected(path + ".role", found, "one of system, user, assistant, tool, latest_reminder");
}

Result<Message> ParseMessage(const JsonValue& value, const std::string& path) {
  if (!value.IsObject()) return Unexpected(path, &value, "an object");
  Message message;
  RETURN_IF_ERROR(ParseRole(value, path, message));
  const JsonValue* content = value.Find("content");
  const bool needs_content = message.role == Role::kUser || message.role == Role::kLatestReminder;
  if (needs_content && content == nullptr) {
    return Unexpected(path + ".content", nullptr, "a string or a list of blocks");
  }
  ASSIGN_OR_RETURN(message.content, ParseContent(content, path + ".content"));
  RETURN_IF_ERROR(ParseTools(value, path, message));
  RETURN_IF_ERROR(ParseResponseFormat(value, path, message));
  RETURN_IF_ERROR(ParseTask(value, path, message));
  RETURN_IF_ERROR(ParseToolCalls(value, path, message));
  ASSIGN_OR_RETURN(message.reasoning_content, OptionalString(value, "reasoning_content", path));
  ASSIGN_OR_RETURN(message.tool_call_id, OptionalString(value, "tool_call_id", path));
  ASSIGN_OR_RETURN(const bool wo_eos, OptionalBool(value, "wo_eos", path));
  ASSIGN_OR_RETURN(const bool prefix, OptionalBool(value, "prefix", path));
  message.open_ended = wo_eos || prefix;
  return message;
}

}  // namespace

Result<std::vector<Message>> ParseMessages(std::string_view json) {
  Result<JsonValue> parsed = ParseJson(json);
  if (!parsed.ok()) return std::move(parsed).status().WithContext("messages");
  if (!parsed->IsList()) return Unexpected("messages", &*parsed, "a list");
  std::vector<Message> messages;
  for (size_t i = 0; i < parsed->items.size(); ++i) {
    ASSIGN_OR_RETURN(Message message,
                     ParseMessage(parsed->items[i], fmt::format("messages[{}]", i)));
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace deepinfer
