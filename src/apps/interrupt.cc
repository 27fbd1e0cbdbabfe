#include "apps/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "base/check.h"
#include "base/status.h"
#include "kernels/exec_context.h"

namespace deepinfer {
namespace {

// Everything below is touched by handlers: lock-free atomics only.
std::atomic<bool> interrupted{false};
std::atomic<bool> terminated{false};
std::atomic<ExecContext*> context{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<ExecContext*>::is_always_lock_free);

void OnStop(int signal_number) {
  if (signal_number == SIGTERM) terminated.store(true);
  if (interrupted.exchange(true)) _exit(ExitCodeOf(ErrorCode::kCancelled));
  if (ExecContext* running = context.load()) running->RequestStop();
}

void OnLostMapping(int /*signal*/) {
  constexpr std::string_view kSentence =
      "deepinfer: a mapped file shrank or could not be read while it was in use\n";
  // Nothing is left to do about a failing stderr.
  [[maybe_unused]] const ssize_t put = write(STDERR_FILENO, kSentence.data(), kSentence.size());
  _exit(ExitCodeOf(ErrorCode::kIoError));
}

void Handle(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a read from the terminal must return so that Ctrl-C is seen.
  CHECK_EQ(sigaction(signal_number, &action, nullptr), 0);
}

}  // namespace

void InstallSignalHandlers() {
  Handle(SIGINT, OnStop);
  Handle(SIGTERM, OnStop);
  Handle(SIGBUS, OnLostMapping);
  Handle(SIGPIPE, SIG_IGN);
}

bool Interrupted() { return interrupted.load(std::memory_order_relaxed); }

bool TakeInterrupt() { return Terminated() ? Interrupted() : interrupted.exchange(false); }

bool Terminated() { return terminated.load(std::memory_order_relaxed); }

InterruptScope::InterruptScope(ExecContext& running) {
  CHECK(context.exchange(&running) == nullptr);
  if (Interrupted()) running.RequestStop();
}

InterruptScope::~InterruptScope() { context.store(nullptr); }

}  // namespace deepinfer
