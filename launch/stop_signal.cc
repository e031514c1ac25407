#include "launch/stop_signal.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "launch/exit_status.h"
#include "launch/signals.h"

namespace phalanx {
namespace {

std::atomic<std::int64_t> requested_at{0};  // milliseconds; 0: not
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a handler may use it");

std::int64_t now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000 + 1;
}

void request(int signal) {
  std::int64_t first = 0;
  const std::int64_t now = now_ms();
  if (requested_at.compare_exchange_strong(first, now)) return;
  if (signal == SIGINT && now - first >= kSameInterrupt.count()) ::_exit(kInterrupted);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void install_stop_signal(StopOn on) {
  handle(SIGTERM, request);
  handle(SIGUSR1, request);
  const auto terminal = on == StopOn::kInterrupt ? request : SIG_IGN;
  handle(SIGINT, terminal);
  if (!ignored(SIGHUP)) handle(SIGHUP, terminal);
}

bool stop_requested() { return requested_at.load(std::memory_order_relaxed) != 0; }

}  // namespace phalanx
