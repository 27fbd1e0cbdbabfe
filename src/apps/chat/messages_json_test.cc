#include "apps/chat/messages_json.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(MessagesJsonTest, PlainConversationsAreRoleAndContent) {
  const std::vector<Message> messages = {Message::Text(Role::kSystem, "Be \"brief\"."),
                                         Message::Text(Role::kUser, "Grüße\n")};
  EXPECT_EQ(MessagesJson(messages), R"([
  {
    "role": "system",
    "content": "Be \"brief\"."
  },
  {
    "role": "user",
    "content": "Grüße\n"
  }
]
)");
}

TEST(MessagesJsonTest, WhatWasReadIsWrittenSoThatItIsReadAgain) {
  const std::string json = R"([
    {"role":"system","content":"S","tools":[{"type":"function","function":{"name":"f",
      "parameters":{"type":"object","b":1,"a":2.0}}}],"response_format":{"type":"json_object"}},
    {"role":"user","content":[{"type":"text","text":"see"},
      {"type":"image_url","image_url":{"url":"u"}}]},
    {"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[
      {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]},
    {"role":"tool","content":"42","tool_call_id":"c1"},
    {"role":"user","content":"more","task":"title"},
    {"role":"assistant","content":"begin","prefix":true}])";
  const Result<std::vector<Message>> read = ParseMessages(json);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const std::string written = MessagesJson(*read);
  const Result<std::vector<Message>> again = ParseMessages(written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(MessagesJson(*again), written);
  const Result<RenderedPrompt> before = RenderChat(*read, {});
  const Result<RenderedPrompt> after = RenderChat(*again, {});
  ASSERT_TRUE(before.ok()) << before.status().message();
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(before->Text(), after->Text());
  EXPECT_EQ(after->images.size(), 1u);
}

}  // namespace
}  // namespace deepinfer
