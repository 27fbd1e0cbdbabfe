#include "apps/chat/chat_input.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace deepinfer {
namespace {

// Lines that were typed beforehand.
class Typed : public LineReader {
 public:
  explicit Typed(std::deque<std::string> lines) : lines_(std::move(lines)) {}

  Result<TypedLine> Read(const std::string& prompt, const std::string& /*initial*/) override {
    prompts.push_back(prompt);
    if (lines_.empty()) return TypedLine{};
    std::string text = std::move(lines_.front());
    lines_.pop_front();
    if (text == "^C") return TypedLine{.kind = TypedLine::Kind::kInterrupted, .text = {}};
    return TypedLine{.kind = TypedLine::Kind::kLine, .text = std::move(text)};
  }
  void Remember(const std::string& text) override { remembered.push_back(text); }
  bool IsTerminal() const override { return false; }

  std::vector<std::string> prompts;
  std::vector<std::string> remembered;

 private:
  std::deque<std::string> lines_;
};

std::string Message(std::deque<std::string> lines) {
  Typed reader(std::move(lines));
  Result<TypedLine> message = ReadTypedMessage(reader, "> ");
  return message.ok() && message->kind == TypedLine::Kind::kLine ? message->text : "no message";
}

TEST(ChatInputTest, ALineIsAMessage) { EXPECT_EQ(Message({"Hello", "more"}), "Hello"); }

TEST(ChatInputTest, ABackslashGoesOnInTheNextLine) {
  EXPECT_EQ(Message({"one\\", "two\\", "three", "four"}), "one\ntwo\nthree");
}

TEST(ChatInputTest, QuotesHoldSeveralLines) {
  EXPECT_EQ(Message({"\"\"\"", "one", "", " two\\", "\"\"\"", "x"}), "one\n\n two\\");
  EXPECT_EQ(Message({"\"\"\"one", "two\"\"\""}), "one\ntwo");
  EXPECT_EQ(Message({"\"\"\"one\"\"\""}), "one");
}

TEST(ChatInputTest, CtrlCDropsTheWholeMessage) {
  Typed reader({"one\\", "^C", "next"});
  EXPECT_EQ(ReadTypedMessage(reader, "> ")->kind, TypedLine::Kind::kInterrupted);
  EXPECT_EQ(ReadTypedMessage(reader, "> ")->text, "next");
  EXPECT_EQ(reader.prompts, (std::vector<std::string>{"> ", "... ", "> "}));
  EXPECT_EQ(reader.remembered, std::vector<std::string>{"next"});
}

TEST(ChatInputTest, AScriptThatEndsInsideAMessageIsAnError) {
  Typed reader({"\"\"\"", "one"});
  EXPECT_EQ(ReadTypedMessage(reader, "> ").status().message(),
            "stdin: found the end inside a message, expected \"\"\"");
}

}  // namespace
}  // namespace deepinfer
