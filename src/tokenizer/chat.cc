#include "tokenizer/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "tokenizer/chat_template.h"
#include "tokenizer/chat_validate.h"
#include "tokenizer/python_json.h"

namespace deepinfer {
namespace {

using namespace chat_template;  // NOLINT: a page of constants

// A block of a user turn.  Points into the messages.
struct Part {
  const ContentBlock* block = nullptr;                // anything but a tool result
  const std::vector<ContentBlock>* result = nullptr;  // a tool result
  std::string_view call_id;                           // of the tool result
};

// A message as the template sees it: user and tool messages in a row are one user turn.
struct Turn {
  Role role = Role::kUser;
  const Message* message = nullptr;  // the first of them
  std::vector<Part> parts;           // user turns
  std::optional<Task> task;
};

void AppendParts(const Message& message, std::vector<Part>& parts) {
  if (message.role == Role::kTool) {
    parts.push_back({.result = &message.content, .call_id = message.tool_call_id});
    return;
  }
  for (const ContentBlock& block : message.content) {
    if (block.kind == ContentBlock::Kind::kToolResult) {
      parts.push_back({.result = &block.blocks, .call_id = block.tool_call_id});
    } else {
      parts.push_back({.block = &block});
    }
  }
}

std::vector<Turn> MergeTurns(std::span<const Message> messages) {
  std::vector<Turn> turns;
  for (const Message& message : messages) {
    const bool user_side = message.role == Role::kUser || message.role == Role::kTool;
    const bool extends =
        user_side && !turns.empty() && turns.back().role == Role::kUser && !turns.back().task;
    if (!extends) {
      turns.push_back({.role = user_side ? Role::kUser : message.role,
                       .message = &message,
                       .parts = {},
                       .task = message.task});
    }
    if (user_side) AppendParts(message, turns.back().parts);
  }
  return turns;
}

// Puts the tool results of every user turn into the order of the calls they answer, leaving other
// blocks where they are; results of unknown calls count as answers to the first.
void SortToolResults(std::vector<Turn>& turns) {
  std::map<std::string_view, size_t> order;
  const auto order_of = [&](const Part& part) {
    const auto found = order.find(part.call_id);
    return found == order.end() ? size_t{0} : found->second;
  };
  for (Turn& turn : turns) {
    if (turn.role == Role::kAssistant && !turn.message->tool_calls.empty()) {
      order.clear();
      for (size_t i = 0; i < turn.message->tool_calls.size(); ++i) {
        const std::string& id = turn.message->tool_calls[i].id;
        if (!id.empty()) order[id] = i;
      }
    }
    std::vector<Part> results;
    for (const Part& part : turn.parts) {
      if (part.result != nullptr) results.push_back(part);
    }
    std::stable_sort(results.begin(), results.end(),
                     [&](const Part& a, const Part& b) { return order_of(a) < order_of(b); });
    size_t next = 0;
    for (Part& part : turn.parts) {
      if (part.result != nullptr) part = results[next++];
    }
  }
}

// Collects the prompt; neighbours of the same origin become one segment.
class Writer {
 public:
  void Template(std::string_view text) { Append(text, true); }
  void Outside(std::string_view text) { Append(text, false); }
  void Image(const ImageRecord& record) {
    Template(kImage);
    prompt_.images.push_back(record);
  }
  RenderedPrompt Finish() { return std::move(prompt_); }

 private:
  void Append(std::string_view text, bool trusted) {
    if (text.empty()) return;
    if (prompt_.segments.empty() || prompt_.segments.back().trusted != trusted) {
      prompt_.segments.push_back({.text = "", .trusted = trusted});
    }
    prompt_.segments.back().text += text;
  }

  RenderedPrompt prompt_;
};

class Renderer {
 public:
  Renderer(std::vector<Turn> turns, const ChatOptions& options)
      : turns_(std::move(turns)),
        thinking_(options.mode == ThinkingMode::kThinking),
        effort_(options.reasoning_effort) {
    const bool tools = std::any_of(turns_.begin(), turns_.end(),
                                   [](const Turn& turn) { return !turn.message->tools.empty(); });
    drop_ = options.drop_thinking && !tools;
    for (size_t i = 0; i < turns_.size(); ++i) {
      if (AsksForAnAnswer(i)) last_user_ = static_cast<ptrdiff_t>(i);
    }
  }

  RenderedPrompt Render() {
    out_.Template(kBos);
    if (thinking_ || turns_.front().role == Role::kSystem) out_.Template(kSystem);
    if (thinking_) {
      out_.Template(
          fmt::format("Reasoning Effort: {} (range 1-100, the higher the value, the more "
                      "thorough the reasoning)\n\n",
                      effort_));
    }
    for (size_t i = 0; i < turns_.size(); ++i) {
      RenderTurn(i);
      RenderHeader(i);
    }
    return out_.Finish();
  }

 private:
  // A system turn in the middle of a conversation is answered like a user turn.
  bool AsksForAnAnswer(size_t i) const {
    return turns_[i].role == Role::kUser || (turns_[i].role == Role::kSystem && i > 0);
  }
  bool After(size_t i) const { return static_cast<ptrdiff_t>(i) > last_user_; }
  bool AtOrAfter(size_t i) const { return static_cast<ptrdiff_t>(i) >= last_user_; }

  void RenderTurn(size_t i) {
    switch (turns_[i].role) {
      case Role::kSystem:
        if (i > 0) out_.Template(kSystem);
        RenderSystem(*turns_[i].message);
        break;
      case Role::kUser:
      case Role::kTool:
        out_.Template(kUser);
        RenderParts(turns_[i].parts);
        break;
      case Role::kLatestReminder:
        out_.Template(kLatestReminder);
        RenderBlocks(turns_[i].message->content);
        break;
      case Role::kAssistant:
        RenderAssistant(i);
        break;
    }
  }

  void RenderBlock(const ContentBlock& block) {
    switch (block.kind) {
      case ContentBlock::Kind::kText:
        out_.Outside(block.text);
        break;
      case ContentBlock::Kind::kImage:
        out_.Image(block.image);
        break;
      case ContentBlock::Kind::kToolResult:
        out_.Outside("[Unsupported tool_result]");  // nested in another one
        break;
      case ContentBlock::Kind::kOther:
        out_.Outside(fmt::format("[Unsupported {}]", block.text));
        break;
    }
  }

  void RenderBlocks(const std::vector<ContentBlock>& blocks) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i > 0) out_.Template(kBlockSeparator);
      RenderBlock(blocks[i]);
    }
  }

  void RenderParts(const std::vector<Part>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) out_.Template(kBlockSeparator);
      if (parts[i].result == nullptr) {
        RenderBlock(*parts[i].block);
        continue;
      }
      out_.Template(kToolResultBegin);
      RenderBlocks(*parts[i].result);
      out_.Template(kToolResultEnd);
    }
  }

  void RenderSystem(const Message& message) {
    RenderBlocks(message.content);
    if (!message.tools.empty()) {
      out_.Template(kToolsBegin);
      for (size_t i = 0; i < message.tools.size(); ++i) {
        if (i > 0) out_.Template("\n");
        out_.Outside(message.tools[i]);
      }
      out_.Template(kToolsEnd);
    }
    if (!message.response_format.empty()) {
      out_.Template(kResponseFormat);
      out_.Outside(message.response_format);
    }
  }

  void RenderAssistant(size_t i) {
    const Message& message = *turns_[i].message;
    const bool answers_task = i > 0 && turns_[i - 1].task;
    if (thinking_ && !answers_task && (!drop_ || After(i))) {
      out_.Outside(message.reasoning_content);
      out_.Template(kThinkEnd);
    }
    RenderBlocks(message.content);
    if (!message.tool_calls.empty()) {
      out_.Template(kCallsBegin);
      for (const ToolCall& call : message.tool_calls) RenderCall(call);
      out_.Template(kCallsEnd);
    }
    if (!message.open_ended) out_.Template(kEos);
  }

  void RenderCall(const ToolCall& call) {
    out_.Template(kInvokeBegin);
    out_.Outside(call.name);
    out_.Template("\">\n");
    const JsonValue arguments = ArgumentsOf(call);
    for (const auto& [name, value] : arguments.members) {
      out_.Template(kParameterBegin);
      out_.Outside(name);
      out_.Template(value.IsString() ? kStringParameter : kJsonParameter);
      out_.Outside(value.IsString() ? value.text : PythonDump(value));
      out_.Template(kParameterEnd);
      out_.Template("\n");
    }
    if (arguments.members.empty()) out_.Template("\n");
    out_.Template(kInvokeEnd);
    out_.Template("\n");
  }

  // An object, possibly as a JSON text in a JSON text; anything else becomes one parameter.
  static JsonValue ArgumentsOf(const ToolCall& call) {
    Result<JsonValue> value = ParseJson(call.arguments);
    if (value.ok() && value->IsString()) value = ParseJson(value->text);
    if (value.ok() && value->IsObject()) return *std::move(value);
    JsonValue raw{.kind = JsonValue::Kind::kString, .text = call.arguments};
    JsonValue object{.kind = JsonValue::Kind::kObject};
    object.members.push_back({std::string(kRawArguments), std::move(raw)});
    return object;
  }

  // What follows a turn that the model is to answer.
  void RenderHeader(size_t i) {
    const bool last = i + 1 == turns_.size();
    const bool answered = !last && (turns_[i + 1].role == Role::kAssistant ||
                                    turns_[i + 1].role == Role::kLatestReminder);
    if (!last && !answered) return;
    if (turns_[i].task) {
      const Task task = *turns_[i].task;
      if (task == Task::kAction) {
        out_.Template(kAssistant);
        out_.Template(thinking_ ? kThinkBegin : kThinkEnd);
      }
      out_.Template(fmt::format("<｜{}｜>", TaskName(task)));
    } else if (AsksForAnAnswer(i)) {
      const bool thinks = thinking_ && (!drop_ || AtOrAfter(i));
      out_.Template(kAssistant);
      out_.Template(thinks ? kThinkBegin : kThinkEnd);
    }
  }

  std::vector<Turn> turns_;
  bool thinking_;
  int effort_;
  bool drop_ = true;          // no reasoning before the last user turn
  ptrdiff_t last_user_ = -1;  // the last turn that asks for an answer
  Writer out_;
};

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
    case Role::kLatestReminder:
      return "latest_reminder";
  }
  return "";
}

std::string_view TaskName(Task task) {
  switch (task) {
    case Task::kAction:
      return "action";
    case Task::kQuery:
      return "query";
    case Task::kAuthority:
      return "authority";
    case Task::kDomain:
      return "domain";
    case Task::kTitle:
      return "title";
    case Task::kReadUrl:
      return "read_url";
  }
  return "";
}

Message Message::Text(Role role, std::string text) {
  Message message;
  message.role = role;
  message.content.push_back({.text = std::move(text)});
  return message;
}

EffortNames EffortNames::Newer() {
  return {.values = {{"low", 50}, {"high", 75}, {"xhigh", 75}, {"max", 100}}, .default_value = 75};
}

EffortNames EffortNames::Older() {
  return {.values = {{"low", 25}, {"high", 50}, {"xhigh", 75}, {"max", 100}}, .default_value = 50};
}

Result<int> ResolveEffort(std::string_view effort, const EffortNames& names) {
  std::string expected;
  for (const auto& [name, value] : names.values) {
    if (name == effort) return value;
    expected += name + ", ";
  }
  int number = 0;
  const char* end = effort.data() + effort.size();
  const auto [stop, error] = std::from_chars(effort.data(), end, number);
  if (error == std::errc() && stop == end && number >= 1 && number <= 100) return number;
  return InvalidArgument(
      fmt::format("reasoning_effort: found '{}', expected {}or 1 to 100", effort, expected));
}

std::string RenderedPrompt::Text() const {
  std::string text;
  for (const PromptSegment& segment : segments) text += segment.text;
  return text;
}

Result<RenderedPrompt> RenderChat(std::span<const Message> messages, const ChatOptions& options) {
  RETURN_IF_ERROR(ValidateChat(messages, options));
  std::vector<Turn> turns = MergeTurns(messages);
  SortToolResults(turns);
  return Renderer(std::move(turns), options).Render();
}

}  // namespace deepinfer
