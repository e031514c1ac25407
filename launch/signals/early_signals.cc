// SPDX-License-Identifier: Apache-2.0
// Keeps the dispositions of the signals that stop a run as the parent of this process has set them. Loading the
// program's libraries takes up to a second, and the constructor of UCX, which Open MPI loads, installs a handler for
// SIGHUP. Without this file, closing the terminal during that second would have no effect, and nohup would never have
// any.
//
// The signals are blocked before the first library is initialized. Before the program's own globals are initialized,
// the dispositions are restored and the signals that have arrived are delivered.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PHALANX_BEFORE_LIBRARIES __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define PHALANX_BEFORE_LIBRARIES
#endif

namespace phalanx {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1};
constexpr std::size_t kCount = sizeof kSignals / sizeof kSignals[0];

// The kernel's types: libraries that are not initialized yet may interpose the functions of libc.
using Mask = std::uint64_t;
struct Action {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  Mask mask;
};

Mask mask_before = 0;
void (*handlers_before[kCount])(int) = {};

PHALANX_BEFORE_LIBRARIES void hold_signals(int, char**, char**) {
  Mask held = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    Action action = {};
    ::syscall(SYS_rt_sigaction, kSignals[i], nullptr, &action, sizeof(Mask));
    handlers_before[i] = action.handler;  // SIG_DFL or SIG_IGN: no handler outlives exec()
    held |= Mask{1} << (kSignals[i] - 1);
  }
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &held, &mask_before, sizeof(Mask));
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const hold)(int, char**, char**) = hold_signals;

constexpr int kBeforeGlobals = 101;  // the earliest priority that is not reserved

[[gnu::constructor(kBeforeGlobals)]] void deliver_signals() {
  for (std::size_t i = 0; i < kCount; ++i) ::signal(kSignals[i], handlers_before[i]);
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask_before, nullptr, sizeof(Mask));
}

}  // namespace
}  // namespace phalanx
