#include "apps/chat/line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <string_view>

#include "apps/interrupt.h"
#include "apps/line_source.h"

namespace deepinfer {
namespace {

constexpr int kHistoryLines = 1000;

// One character of standard input for libedit.  Its own reader would try again after a signal.
int ReadCharacter(EditLine* /*editor*/, wchar_t* character) {
  std::mbstate_t state{};
  while (true) {
    char byte = 0;
    if (Interrupted()) return -1;
    const ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got <= 0) return static_cast<int>(got);
    const size_t used = std::mbrtowc(character, &byte, 1, &state);
    if (used == static_cast<size_t>(-2)) continue;  // more bytes follow
    if (used == static_cast<size_t>(-1)) {
      state = {};
      continue;  // no character of any text: left out
    }
    return 1;
  }
}

char* PromptOf(EditLine* editor) {
  std::string* prompt = nullptr;
  el_get(editor, EL_CLIENTDATA, &prompt);
  return prompt->data();
}

class TerminalReader : public LineReader {
 public:
  TerminalReader()
      : editor_(el_init("deepinfer", stdin, stderr, stderr)), history_(history_init()) {
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(editor_, EL_CLIENTDATA, &prompt_);
    el_set(editor_, EL_PROMPT, PromptOf);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_GETCFN, ReadCharacter);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(editor_, nullptr);  // the user's ~/.editrc
  }
  ~TerminalReader() override {
    el_end(editor_);
    history_end(history_);
  }

  Result<TypedLine> Read(const std::string& prompt, const std::string& initial) override {
    prompt_ = prompt;
    el_resize(editor_);
    if (!initial.empty()) el_push(editor_, initial.c_str());
    int count = 0;
    const char* line = el_gets(editor_, &count);
    if (line != nullptr && count > 0) {
      std::string_view text(line);
      if (text.ends_with('\n')) text.remove_suffix(1);
      return TypedLine{.kind = TypedLine::Kind::kLine, .text = std::string(text)};
    }
    std::fputc('\n', stderr);
    el_reset(editor_);
    const bool interrupted = TakeInterrupt() && !Terminated();
    return TypedLine{.kind = interrupted ? TypedLine::Kind::kInterrupted : TypedLine::Kind::kEnd,
                     .text = {}};
  }

  void Remember(const std::string& text) override {
    HistEvent event;
    history(history_, &event, H_ENTER, text.c_str());
  }

  bool IsTerminal() const override { return true; }

 private:
  EditLine* editor_;
  History* history_;
  std::string prompt_;
};

class ScriptReader : public LineReader {
 public:
  explicit ScriptReader(LineSource source) : source_(std::move(source)) {}

  Result<TypedLine> Read(const std::string& /*prompt*/, const std::string& /*initial*/) override {
    Result<std::optional<SourceLine>> line = source_.Next();
    if (!line.ok() && line.status().code() == ErrorCode::kCancelled) {
      return TypedLine{.kind = TypedLine::Kind::kEnd, .text = {}};
    }
    if (!line.ok()) return std::move(line).status();
    if (!line->has_value()) return TypedLine{.kind = TypedLine::Kind::kEnd, .text = {}};
    return TypedLine{.kind = TypedLine::Kind::kLine, .text = std::move((*line)->text)};
  }

  bool IsTerminal() const override { return false; }

 private:
  LineSource source_;
};

}  // namespace

Result<std::unique_ptr<LineReader>> OpenLineReader() {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {
    // Characters of the terminal; numbers keep their point.  Text is UTF-8 here, whatever else the
    // environment says.
    std::setlocale(LC_CTYPE, "");
    if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
    return std::unique_ptr<LineReader>(std::make_unique<TerminalReader>());
  }
  ASSIGN_OR_RETURN(LineSource source, LineSource::Open("-"));
  return std::unique_ptr<LineReader>(std::make_unique<ScriptReader>(std::move(source)));
}

}  // namespace deepinfer
