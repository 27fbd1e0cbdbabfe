// Signals of the command line.  The first Ctrl-C (or SIGTERM) asks the command to stop, the second
// ends the program at once.  A closed pipe becomes a write error instead of a silent death, and a
// mapped file that shrinks or whose disk fails while it is read ends the program with a sentence:
// there is no value that could stand for the missing bytes.
#pragma once

namespace deepinfer {

class ExecContext;

// Once, before any thread starts.
void InstallSignalHandlers();

// Whether Ctrl-C was pressed, or SIGTERM came, since the start or the last TakeInterrupt().
// Callable from any thread.
bool Interrupted();
// The same, and forgets it: for a command that Ctrl-C does not end.  SIGTERM is never forgotten.
bool TakeInterrupt();
// Whether SIGTERM came.
bool Terminated();

// While it lives, Ctrl-C also asks this context to stop its step.  One at a time.
class InterruptScope {
 public:
  explicit InterruptScope(ExecContext& context);
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();
};

}  // namespace deepinfer
