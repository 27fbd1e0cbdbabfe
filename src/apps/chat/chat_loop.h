// The conversation as a person leads it: messages, and commands that start with a slash.
//
// Answers go to standard output, everything else to stderr.  On a terminal Ctrl-C stops the answer
// that is being written, whose beginning stays in the conversation; at the prompt it drops the
// line, and twice in a row, as Ctrl-D, it leaves.  A script is read to its end.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apps/chat/chat_session.h"
#include "apps/chat/line_reader.h"
#include "apps/output.h"
#include "base/status.h"
#include "engine/model_instance.h"

namespace deepinfer {

// Not thread-safe.  Everything it is given must outlive it.
class ChatLoop {
 public:
  ChatLoop(ModelInstance& model, ChatSession& session, LineReader& reader, Output& out)
      : model_(model), session_(session), reader_(reader), out_(out) {}

  // Until the person leaves or the script ends.  An error of one message or command is a sentence
  // on stderr; a script that had one ends in an error too.  Cancelled after SIGTERM, or when Ctrl-C
  // ends a script.
  Status Run();
  // /load
  Status Load(const std::string& file);

 private:
  struct Command {
    const char* usage;  // "/edit N [TEXT]": the name is its first word
    const char* help;
    Status (ChatLoop::*run)(const std::string& argument);
  };
  static const Command kCommands[];
  using Ask = std::function<Result<GenerationResult>(const AnswerCallbacks& callbacks)>;

  Result<bool> TakeMessage();
  Status Dispatch(const std::string& text);
  Status RunCommand(const std::string& text);
  Status Answer(const Ask& ask);

  Status Help(const std::string& argument);
  Status System(const std::string& argument);
  Status Effort(const std::string& argument);
  Status Image(const std::string& argument);
  Status Save(const std::string& argument);
  Status Stats(const std::string& argument);
  Status Clear(const std::string& argument);
  Status History(const std::string& argument);
  Status Edit(const std::string& argument);
  Status Retry(const std::string& argument);
  Status Quit(const std::string& argument);

  ModelInstance& model_;
  ChatSession& session_;
  LineReader& reader_;
  Output& out_;
  bool quit_ = false;
  bool stopped_ = false;      // Ctrl-C ended the last answer
  bool interrupted_ = false;  // the last line ended in Ctrl-C
  int64_t failures_ = 0;
  std::optional<std::string> figures_;  // of the last answer
};

}  // namespace deepinfer
