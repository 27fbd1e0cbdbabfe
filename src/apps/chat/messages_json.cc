#include "apps/chat/messages_json.h"

#include <nlohmann/json.hpp>

namespace deepinfer {
namespace {

using Json = nlohmann::ordered_json;

Json ContentJson(const std::vector<ContentBlock>& blocks);

Json BlockJson(const ContentBlock& block) {
  switch (block.kind) {
    case ContentBlock::Kind::kText:
      return {{"type", "text"}, {"text", block.text}};
    case ContentBlock::Kind::kImage:
      return Json::parse(block.image.json);
    case ContentBlock::Kind::kToolResult:
      return {{"type", "tool_result"},
              {"tool_use_id", block.tool_call_id},
              {"content", ContentJson(block.blocks)}};
    case ContentBlock::Kind::kOther:
      return {{"type", block.text}};
  }
  return nullptr;
}

Json ContentJson(const std::vector<ContentBlock>& blocks) {
  if (blocks.empty()) return "";
  if (blocks.size() == 1 && blocks[0].kind == ContentBlock::Kind::kText) return blocks[0].text;
  Json list = Json::array();
  for (const ContentBlock& block : blocks) list.push_back(BlockJson(block));
  return list;
}

Json ToolCallJson(const ToolCall& call) {
  Json json = {{"type", "function"},
               {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
  if (!call.id.empty()) json["id"] = call.id;
  return json;
}

Json MessageJson(const Message& message) {
  Json json = {{"role", RoleName(message.role)}, {"content", ContentJson(message.content)}};
  if (!message.reasoning_content.empty()) json["reasoning_content"] = message.reasoning_content;
  for (const ToolCall& call : message.tool_calls) json["tool_calls"].push_back(ToolCallJson(call));
  if (!message.tool_call_id.empty()) json["tool_call_id"] = message.tool_call_id;
  for (const std::string& tool : message.tools) {
    json["tools"].push_back({{"type", "function"}, {"function", Json::parse(tool)}});
  }
  if (!message.response_format.empty()) {
    json["response_format"] = Json::parse(message.response_format);
  }
  if (message.task) json["task"] = TaskName(*message.task);
  if (message.open_ended) json["prefix"] = true;
  return json;
}

}  // namespace

std::string MessagesJson(std::span<const Message> messages) {
  Json list = Json::array();
  for (const Message& message : messages) list.push_back(MessageJson(message));
  return list.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace deepinfer
