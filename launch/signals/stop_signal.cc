// SPDX-License-Identifier: Apache-2.0
#include "launch/signals/stop_signal.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>

#include "framework/base/no_sigpipe.h"
#include "launch/exit_status.h"
#include "launch/signals/signals.h"

namespace phalanx {
namespace {

std::atomic<std::int64_t> requested_at{0};  // milliseconds; 0: not requested
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a handler may use it");

std::int64_t now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000 + 1;
}

// Composed before any signal arrives, because a handler may only read them.
struct Texts {
  std::string interrupt, terminate, hang_up, user, ended, overdue;

  const std::string& of(int signal) const {
    switch (signal) {
      case SIGINT:
        return interrupt;
      case SIGTERM:
        return terminate;
      case SIGHUP:
        return hang_up;
      default:
        return user;
    }
  }
};
Texts texts;
unsigned grace_seconds = 0;

void say(const std::string& text) {
  const NoSigpipe guard;
  // If no one reads standard error any more, the error cannot be reported.
  if (!text.empty() && ::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void request(int signal) {
  std::int64_t first = 0;
  const std::int64_t now = now_ms();
  const int error = errno;
  if (requested_at.compare_exchange_strong(first, now)) {
    if (signal == SIGTERM && grace_seconds > 0) ::alarm(grace_seconds);
    say(texts.of(signal));
  } else if (signal == SIGINT && now - first >= kSameInterrupt.count()) {
    say(texts.ended);
    ::_exit(kInterrupted);
  }
  errno = error;
}

void overdue(int) {
  say(texts.overdue);
  ::_exit(kInterrupted);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

Texts texts_of(const StopPolicy& stop_policy) {
  const auto line = [&](int signal) { return stop_message(signal, stop_policy) + "\n"; };
  const std::string saved =
      stop_policy.after_step ? "what it has learned after its newest checkpoint, if it has any, is lost" : "";
  return {.interrupt = line(SIGINT),
          .terminate = line(SIGTERM),
          .hang_up = line(SIGHUP),
          .user = line(SIGUSR1),
          .ended = forced_end_message(true, stop_policy, saved) + "\n",
          .overdue = forced_end_message(false, stop_policy, saved) + "\n"};
}

}  // namespace

void install_stop_signal(StopOn on, const StopPolicy& stop_policy, bool speaks) {
  const bool terminal = on == StopOn::kInterrupt;
  if (speaks) texts = texts_of(stop_policy);
  if (terminal && stop_policy.grace.count() > 0) {
    grace_seconds = static_cast<unsigned>(std::chrono::ceil<std::chrono::seconds>(stop_policy.grace).count());
    handle(SIGALRM, overdue);
  }
  for (const int signal : {SIGTERM, SIGUSR1}) {
    if (!terminal || !ignored(signal)) handle(signal, request);
  }
  for (const int signal : {SIGINT, SIGHUP}) {
    if (!ignored(signal)) handle(signal, terminal ? request : SIG_IGN);
  }
}

bool stop_requested() { return requested_at.load(std::memory_order_relaxed) != 0; }

}  // namespace phalanx
