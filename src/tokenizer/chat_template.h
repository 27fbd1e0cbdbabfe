// The fixed texts of the prompt format (prompt_format.md sections 2, 3 and 5).  Private to the
// tokenizer folder.
#pragma once

#include <string_view>

namespace deepinfer::chat_template {

inline constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEos = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kSystem = "<｜System｜>";
inline constexpr std::string_view kUser = "<｜User｜>";
inline constexpr std::string_view kAssistant = "<｜Assistant｜>";
inline constexpr std::string_view kLatestReminder = "<｜latest_reminder｜>";
inline constexpr std::string_view kThinkBegin = "<think>";
inline constexpr std::string_view kThinkEnd = "</think>";
inline constexpr std::string_view kDsml = "｜DSML｜";
inline constexpr std::string_view kImage = "<｜deepseek_image｜>";

inline constexpr std::string_view kBlockSeparator = "\n\n";
inline constexpr std::string_view kToolResultBegin = "<tool_result>";
inline constexpr std::string_view kToolResultEnd = "</tool_result>";

// The space behind the DSML token belongs to the tag's name.
inline constexpr std::string_view kCallsBegin = "\n\n<｜DSML｜ calls>\n";
inline constexpr std::string_view kCallsStop = "\n\n<｜DSML｜ calls";
inline constexpr std::string_view kCallsEnd = "</｜DSML｜ calls>";
inline constexpr std::string_view kInvokeBegin = "<｜DSML｜ invoke name=\"";
inline constexpr std::string_view kInvokeEnd = "</｜DSML｜ invoke>";
inline constexpr std::string_view kParameterBegin = "<｜DSML｜ parameter name=\"";
inline constexpr std::string_view kStringParameter = "\" string=\"true\">";
inline constexpr std::string_view kJsonParameter = "\" string=\"false\">";
inline constexpr std::string_view kParameterEnd = "</｜DSML｜ parameter>";
// The parameter that holds arguments which are no JSON object.
inline constexpr std::string_view kRawArguments = "arguments";

inline constexpr std::string_view kResponseFormat =
    "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n";

inline constexpr std::string_view kToolsBegin =
    "\n\n## Tools\n\n"
    "You have access to a set of tools to help answer the user's question. You can invoke tools by "
    "writing a \"<｜DSML｜ calls>\" block like the following:\n\n"
    "<｜DSML｜ calls>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME\">\n"
    "<｜DSML｜ parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE"
    "</｜DSML｜ parameter>\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "<｜DSML｜ invoke name=\"$TOOL_NAME2\">\n"
    "...\n"
    "</｜DSML｜ invoke>\n"
    "</｜DSML｜ calls>\n\n"
    "String parameters should be specified as is and set `string=\"true\"`. For all other types "
    "(numbers, booleans, arrays, objects), pass the value in JSON format and set "
    "`string=\"false\"`.\n\n"
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning "
    "inside <think>...</think> BEFORE any tool calls or final response.\n\n"
    "Otherwise, output directly after </think> with tool calls or final response.\n\n"
    "### Available Tool Schemas\n\n";
inline constexpr std::string_view kToolsEnd =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
    "calls.\n";

}  // namespace deepinfer::chat_template
