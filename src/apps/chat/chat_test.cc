// deepinfer chat as its users run it: from a script, and on a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/support/run_deepinfer.h"

namespace deepinfer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Outcome Chat(const std::string& script, const std::string& flags = "--temperature 0") {
  return Deepinfer("chat " + flags, "", script);
}

TEST(ChatScriptTest, EveryMessageIsAnswered) {
  const Outcome run = Chat("Hello!\n\nWho are you?\n");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out,
            "Hello! How can I help you today?\n"
            "I am DeepInfer Nano, a very small language model made to test an inference engine.\n");
  EXPECT_THAT(run.err, IsEmpty());
}

TEST(ChatScriptTest, AConversationIsSavedLoadedAndGeneratedFrom) {
  const ScratchDir scratch;
  const std::string file = (scratch / "chat.json").string();
  const Outcome first = Chat("/system Be kind.\nHello!\n/save " + file + "\n");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("3 messages in " + file));
  const nlohmann::json saved = nlohmann::json::parse(*ReadFile(file));
  ASSERT_EQ(saved.size(), 3u);
  EXPECT_EQ(saved[0]["content"], "Be kind.");
  EXPECT_EQ(saved[2]["role"], "assistant");
  const Outcome loaded = Chat("/load " + file + "\n/history\n/clear\n/history\n");
  EXPECT_THAT(loaded.err, AllOf(HasSubstr("   1 user       Hello!"), HasSubstr("assistant")));
  EXPECT_EQ(Deepinfer("generate --temperature 0 --max-tokens 2 --messages " + file).exit_code, 0);
  EXPECT_EQ(Chat("/retry\n", "--temperature 0 --messages " + file).out, first.out);
}

TEST(ChatScriptTest, EditAndRetryAnswerAgain) {
  const Outcome run =
      Chat("Who are you?\n/edit 1 Hello!\n/retry\n/edit 1\nWho are you?\n/history\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string name =
      "I am DeepInfer Nano, a very small language model made to test an inference engine.\n";
  const std::string hello = "Hello! How can I help you today?\n";
  EXPECT_EQ(run.out, name + hello + hello + name);
  EXPECT_THAT(run.err, Not(HasSubstr("Hello!")));
}

TEST(ChatScriptTest, ThinkingIsMarked) {
  const Outcome run = Chat("/effort high\nWho are you?\n/effort off\nHello!\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::StartsWith("<think>\n"));
  EXPECT_THAT(run.out, testing::EndsWith("\n</think>\nI am DeepInfer Nano, a very small language "
                                         "model made to test an inference engine.\n"
                                         "Hello! How can I help you today?\n"));
}

TEST(ChatScriptTest, ErrorsAreSentencesAndTheRestRuns) {
  const Outcome run =
      Chat("/nope\n/image cat.png\n/effort 1000\n/load /no/such\n/edit 3 x\n/save\nHello!\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "Hello! How can I help you today?\n");
  EXPECT_THAT(
      run.err,
      AllOf(HasSubstr("found unknown command '/nope', expected one of /help, /system"),
            HasSubstr("/image: found 'cat.png', expected no image: this build has no vision yet"),
            HasSubstr("/effort: "), HasSubstr("/load: /no/such: cannot open"),
            HasSubstr("/edit: message: found 3"), HasSubstr("/save: found no file name"),
            HasSubstr("found 6 lines that failed")));
}

TEST(ChatScriptTest, StatsHelpAndQuit) {
  const Outcome run = Chat("Hello!\n/stats\n/help\n/quit\nnever read\n");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "Hello! How can I help you today?\n");
  EXPECT_THAT(run.err, AllOf(HasSubstr("1 answers: prompt 6 tokens"), HasSubstr("peak memory"),
                             HasSubstr("/edit N [TEXT]")));
}

// The program on a terminal of its own.
class Terminal {
 public:
  explicit Terminal(std::vector<std::string> arguments) {
    pid_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    setenv("TERM", "xterm", 1);
    setenv("HOME", "/nonexistent", 1);  // no ~/.editrc
    std::vector<char*> argv = {const_cast<char*>(DEEPINFER_BINARY)};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(fd_);
  }

  // Keys for the line editor, which has shown its prompt but may not have the terminal yet: what
  // comes before that is the terminal's own, or lost.
  void Type(std::string_view keys) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    termios mode{};
    do {
      poll(nullptr, 0, 2);
      ASSERT_EQ(tcgetattr(fd_, &mode), 0);
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << screen_;
    } while ((mode.c_lflag & ICANON) != 0);
    Press(keys);
  }
  void Press(std::string_view keys) {
    EXPECT_EQ(write(fd_, keys.data(), keys.size()), std::ssize(keys));
  }

  // Waits until the screen has shown this after what was waited for before.
  bool Sees(std::string_view text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (true) {
      const size_t found = screen_.find(text, seen_);
      if (found != std::string::npos) {
        seen_ = found + text.size();
        return true;
      }
      if (std::chrono::steady_clock::now() > deadline || !ReadMore()) return false;
    }
  }

  // That of a program which ends by itself; one that goes on in silence is killed.
  int ExitCode() {
    while (ReadMore()) {
    }
    return Reap();
  }

  const std::string& screen() const { return screen_; }

 private:
  int Reap() {
    if (!closed_) kill(pid_, SIGKILL);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  bool ReadMore() {
    struct pollfd wait = {.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 60000) <= 0) return false;
    char buffer[4096];
    const ssize_t got = read(fd_, buffer, sizeof buffer);
    closed_ = got <= 0;
    if (closed_) return false;
    screen_.append(buffer, static_cast<size_t>(got));
    return true;
  }

  int fd_ = -1;
  pid_t pid_ = -1;
  bool closed_ = false;  // the program has closed its end
  std::string screen_;
  size_t seen_ = 0;
};

constexpr const char* kLeft = "\x1b[D";
constexpr const char* kUp = "\x1b[A";
constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";

TEST(ChatTerminalTest, LinesAreEditedAndComeBackFromTheHistory) {
  Terminal terminal({"chat", "--temperature", "0"});
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type(std::string("Helo!") + kLeft + kLeft + "l\r");
  ASSERT_TRUE(terminal.Sees("Hello! How can I help you today?")) << terminal.screen();
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type(std::string(kUp) + "\r");
  ASSERT_TRUE(terminal.Sees("Hello! How can I help you today?")) << terminal.screen();
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type("Grüßé\x7f\x7f\x7f\x7f\x7f/history\r");  // whole characters are rubbed out
  ASSERT_TRUE(terminal.Sees("   2 user       Hello!")) << terminal.screen();
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type("/edit 1\r");
  ASSERT_TRUE(terminal.Sees("edit> ")) << terminal.screen();
  terminal.Type("!\r");
  ASSERT_TRUE(terminal.Sees("> ")) << terminal.screen();
  terminal.Type("/history\r");
  ASSERT_TRUE(terminal.Sees("   1 user       Hello!!")) << terminal.screen();
  terminal.Type("/quit\r");
  EXPECT_EQ(terminal.ExitCode(), 0);
}

TEST(ChatTerminalTest, CtrlDLeaves) {
  Terminal terminal({"chat"});
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type(kCtrlD);
  EXPECT_EQ(terminal.ExitCode(), 0);
}

TEST(ChatTerminalTest, CtrlCDropsTheLineAndTwiceLeaves) {
  Terminal terminal({"chat"});
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type("never sent");
  terminal.Press(kCtrlC);
  ASSERT_TRUE(terminal.Sees("(Ctrl-C again or Ctrl-D leaves)")) << terminal.screen();
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type("/history\r");
  ASSERT_TRUE(terminal.Sees("> ")) << terminal.screen();
  terminal.Press(kCtrlC);
  ASSERT_TRUE(terminal.Sees("leaves)")) << terminal.screen();
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Press(kCtrlC);
  EXPECT_EQ(terminal.ExitCode(), 0);
  EXPECT_THAT(terminal.screen(), Not(HasSubstr("   1 user")));
}

TEST(ChatTerminalTest, CtrlCStopsOnlyTheAnswerWhichStays) {
  // Without its end token the answer goes on to the end of the context.
  Terminal terminal({"chat", "--logit-bias", "1:-100", "--temperature", "0"});
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type("Hello!\r");
  ASSERT_TRUE(terminal.Sees("Hello! How can I help")) << terminal.screen();
  terminal.Press(kCtrlC);
  ASSERT_TRUE(terminal.Sees("[stopped]")) << terminal.screen();
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type("/history\r");
  ASSERT_TRUE(terminal.Sees("     assistant  Hello! How can I help")) << terminal.screen();
  terminal.Type("/quit\r");
  EXPECT_EQ(terminal.ExitCode(), 0);
}

TEST(ChatTerminalTest, ThinkingIsDimmed) {
  Terminal terminal({"chat", "--thinking", "--temperature", "0"});
  ASSERT_TRUE(terminal.Sees("> "));
  terminal.Type("Who are you?\r");
  ASSERT_TRUE(terminal.Sees("\x1b[2m")) << terminal.screen();
  ASSERT_TRUE(terminal.Sees("\x1b[0m")) << terminal.screen();
  ASSERT_TRUE(terminal.Sees("I am DeepInfer Nano")) << terminal.screen();
  terminal.Type("/quit\r");
  EXPECT_EQ(terminal.ExitCode(), 0);
}

}  // namespace
}  // namespace deepinfer
