// SPDX-License-Identifier: Apache-2.0
#include "launch/signals/signal_watch.h"

#include <poll.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "framework/base/error.h"
#include "launch/signals/signals.h"

namespace phalanx {
namespace {

sigset_t watched() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    if (!ignored(signal)) ::sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

SignalWatch::SignalWatch() {
  const sigset_t set = watched();
  fd_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_.valid()) throw Error("cannot watch signals: " + std::generic_category().message(errno));
  ::pthread_sigmask(SIG_BLOCK, &set, &old_mask_);
  // If the parent of this process ignored SIGCHLD, this process does too, and the kernel would discard the exit
  // statuses of children.
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &action, &old_child_action_);
}

SignalWatch::~SignalWatch() {
  take();  // signals that arrived too late to matter must not end this process now
  ::sigaction(SIGCHLD, &old_child_action_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

std::vector<int> SignalWatch::take() {
  std::vector<int> signals;
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) signals.push_back(static_cast<int>(info.ssi_signo));
  return signals;
}

bool SignalWatch::is_stopped_within(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (true) {
    if (std::ranges::any_of(take(), [](int signal) { return signal != SIGCHLD; })) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd source{.fd = fd(), .events = POLLIN, .revents = 0};
    ::poll(&source, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
  }
}

void SignalWatch::restore_in_child() {
  fd_.close();
  ::sigaction(SIGCHLD, &old_child_action_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

}  // namespace phalanx
