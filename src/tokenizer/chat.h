// Conversations and their prompt (prompt_format.md sections 2 to 4).
//
// Messages are plain data.  RenderChat turns them into the one text the model was trained on, cut
// into segments: template text, which may hold control tokens, and text that came from outside.
// The joined text is the prompt; Tokenizer::Encode of it recognises control tokens everywhere, as
// the published encoder does, Tokenizer::EncodeSegments only in the template.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace deepinfer {

enum class ThinkingMode { kChat, kThinking };

enum class Role { kSystem, kUser, kAssistant, kTool, kLatestReminder };
std::string_view RoleName(Role role);

// A short task asked of the model instead of an answer.
enum class Task { kAction, kQuery, kAuthority, kDomain, kTitle, kReadUrl };
std::string_view TaskName(Task task);

// An image block; the i-th image token of a prompt stands for the i-th record.
struct ImageRecord {
  std::string type;  // "image" or "image_url"
  std::string url;   // empty when the block names none
  std::string json;  // the whole block
};

// A part of a message.
struct ContentBlock {
  enum class Kind { kText, kImage, kToolResult, kOther };

  Kind kind = Kind::kText;
  std::string text;                  // kText: the text; kOther: the name of its type
  ImageRecord image;                 // kImage
  std::string tool_call_id;          // kToolResult
  std::vector<ContentBlock> blocks;  // kToolResult
};

struct ToolCall {
  std::string id;
  std::string name;
  // JSON text of an object.  Anything else is passed to the model as one parameter "arguments".
  std::string arguments;
};

struct Message {
  Role role = Role::kUser;
  std::vector<ContentBlock> content;
  // System:
  std::vector<std::string> tools;  // JSON text of each function object
  std::string response_format;     // JSON text; empty: none
  // User and system:
  std::optional<Task> task;
  // Assistant:
  std::string reasoning_content;
  std::vector<ToolCall> tool_calls;
  bool open_ended = false;  // the answer goes on from here (prefix completion)
  // Tool:
  std::string tool_call_id;

  static Message Text(Role role, std::string text);
};

// Reads a JSON list of messages in the shape of the OpenAI API, with `reasoning_content`, `task`,
// `response_format` and `tools` as message fields and `wo_eos` or `prefix` for an open end.
// InvalidArgument names the message, the field, what was found and what was expected.
Result<std::vector<Message>> ParseMessages(std::string_view json);

// Names of reasoning efforts.  Two revisions of the published encoder disagree about the numbers.
struct EffortNames {
  std::vector<std::pair<std::string, int>> values;
  int default_value = 75;

  static EffortNames Newer();  // low 50, high and xhigh 75 (default), max 100
  static EffortNames Older();  // low 25, high 50 (default), xhigh 75, max 100
};
// A name of the map or a number 1 to 100; InvalidArgument otherwise.
Result<int> ResolveEffort(std::string_view effort, const EffortNames& names);

struct ChatOptions {
  ThinkingMode mode = ThinkingMode::kChat;
  // 1 to 100; shown to the model in thinking mode only.
  int reasoning_effort = 75;
  // Leaves out the reasoning of answers before the last user turn; without effect when a message
  // carries tools.
  bool drop_thinking = true;
};

struct RenderedPrompt {
  std::vector<PromptSegment> segments;
  std::vector<ImageRecord> images;

  std::string Text() const;
};

// InvalidArgument for messages that have no rendering: none at all, a field on a role that cannot
// carry it, or a text that spells the image token (which would have no image).
//
// As in the published encoder, consecutive user and tool messages become one turn; a task counts
// only on the first of them.
Result<RenderedPrompt> RenderChat(std::span<const Message> messages, const ChatOptions& options);

}  // namespace deepinfer
